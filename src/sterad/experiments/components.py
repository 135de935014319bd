"""The method, dataset and stream of a run: chosen by name or given as objects, and their fields."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sterad.data import DATASETS, Dataset, Defaults
from sterad.errors import SteradError
from sterad.experiments.objects import (
    DatasetObject,
    StreamObject,
    describe_object,
    is_object,
)
from sterad.methods import METHODS
from sterad.plugins import object_digest
from sterad.registry import Registry
from sterad.streams import STREAMS
from sterad.validation import build, check_value, field_names, unknown_field

KINDS: dict[str, tuple[Registry[Any], str]] = {
    "method": (METHODS, "agd-fd"),
    "dataset": (DATASETS, "digits"),
    "stream": (STREAMS, "clear"),
}
"""Registry and default of each kind of component that a run has."""
RESERVED_NAMES = {*KINDS, "name", "digests"}
"""Keys of `RunConfig.to_dict`, which no field may have."""
MAX_NAME_LENGTH = 60
"""Characters of a dataset's name in the id of a run, which is the name of a folder."""


@dataclass(frozen=True)
class Choice:
    """A method, dataset or stream of a run: chosen by name, or given as an object."""

    name: str
    component: type[Any]
    """The class of a method, or the dataclass of the fields of a dataset or stream."""
    fields: Mapping[str, Any] | None = None
    """Values of the fields of an object whose class is registered."""
    config: Any = None
    """The config of an object whose class is not registered."""
    digest: str | None = None
    """Identifies the object of `config`."""


def choose(kind: str, value: Any, registry: Registry[Any]) -> Choice:
    """Return the component of a kind that a name or an object stands for."""
    if not is_object(value):
        name = registry.resolve(check_value(kind, value, str))
        return Choice(name, registry[name])
    return _CHOOSERS[kind](value)


def _choose_method(value: Any) -> Choice:
    if name := METHODS.name_of(value):
        return Choice(name, value)
    if problem := METHODS.problem_of(value):
        raise SteradError(f"the method {describe_object(value)} {problem}")
    return Choice(value.__name__, value)


def _choose_dataset(value: Any) -> Choice:
    if not isinstance(value, Dataset):
        if name := DATASETS.name_of(type(value)):
            return Choice(name, type(value), _field_values(value))
        if isinstance(value, type) or not hasattr(value, "load"):
            raise SteradError(
                f"the dataset is {describe_object(value)}: give a name, a Dataset, or an object "
                "with load(), such as Digits(per_class=50)"
            )
    dataset = value if isinstance(value, Dataset) else value.load()
    if not isinstance(dataset, Dataset):
        raise SteradError(
            f"load() of {describe_object(value)} returns a {type(dataset).__name__}: return a "
            "Dataset, as Dataset.from_arrays makes it"
        )
    own_defaults = value.defaults() if hasattr(value, "defaults") else None
    counts = f"{len(dataset.train_labels):,} + {len(dataset.test_labels):,}"
    text = f"{counts} inputs of shape {dataset.input_shape}, {dataset.classes} classes"
    config = DatasetObject(text, dataset.flip, dataset, own_defaults)
    name = dataset.name if dataset is value else type(value).__name__
    return Choice(_folder_name(name), DatasetObject, config=config, digest=dataset.digest)


def _choose_stream(value: Any) -> Choice:
    if name := STREAMS.name_of(type(value)):
        return Choice(name, type(value), _field_values(value))
    if isinstance(value, type) or not hasattr(value, "open"):
        raise SteradError(
            f"the stream is {describe_object(value)}: give a name, or an object with "
            "open(dataset, seed), such as Blurry(tasks=5)"
        )
    config = StreamObject(describe_object(value), value)
    name = type(value).__name__
    return Choice(name, StreamObject, config=config, digest=object_digest(value))


_CHOOSERS: dict[str, Callable[[Any], Choice]] = {
    "method": _choose_method,
    "dataset": _choose_dataset,
    "stream": _choose_stream,
}


def _field_values(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _folder_name(name: str) -> str:
    """Return a name without characters that a folder or a pattern of folders cannot have.

    >>> _folder_name("my data/2024"), _folder_name("*")
    ('my-data-2024', 'arrays')
    """
    return re.sub(r"[^\w.]+", "-", name).strip("-.")[:MAX_NAME_LENGTH] or "arrays"


def assign_fields(
    given: Mapping[str, Any], chosen: Mapping[str, Choice], settings: type[Any]
) -> dict[str, dict[str, Any]]:
    """Return the values of the fields of the settings, the method, the dataset and the stream."""
    owners = {kind: getattr(one.component, "Config", one.component) for kind, one in chosen.items()}
    names = {kind: one.name for kind, one in chosen.items()}
    where = f"a run of {names['method']} on {names['stream']} {names['dataset']}"
    fields = route_fields(given, {"settings": settings, **owners}, where)
    for kind, one in chosen.items():
        if (one.fields is not None or one.config is not None) and fields[kind]:
            raise SteradError(
                f"{next(iter(fields[kind]))} is given beside the {kind}, which is an object: set "
                "it in the object"
            )
        fields[kind] |= one.fields or {}
    return fields


def build_stream(fields: dict[str, Any], defaults: Defaults, chosen: Choice) -> Any:
    """Return the config of a stream, with tasks and scale of the dataset where it has none."""
    if isinstance(chosen.config, StreamObject):
        return chosen.config.with_defaults(defaults)
    for name in ("tasks", "scale"):
        if name in field_names(chosen.component) and fields.get(name) is None:
            fields[name] = getattr(defaults, name)
    stream = build(chosen.component, fields)
    return stream.with_hash() if hasattr(stream, "with_hash") else stream  # it reads a file


def route_fields(
    values: Mapping[str, Any], owners: Mapping[str, type[Any]], where: str
) -> dict[str, dict[str, Any]]:
    """Assign each value to the one owner with a field of its name; `where` is for messages."""
    parts: dict[str, dict[str, Any]] = {part: {} for part in owners}
    for owner in owners.values():
        for taken in RESERVED_NAMES.intersection(field_names(owner)):
            raise SteradError(
                f"the field {taken!r} of {owner.__name__} would hide the {taken} of the run or of "
                "its parts: rename it in the plugin"
            )
    for name, value in values.items():
        matching = [part for part, owner in owners.items() if name in field_names(owner)]
        if not matching:
            known = [field for owner in owners.values() for field in field_names(owner)]
            raise unknown_field(name, [*known, *KINDS], where)
        if len(matching) > 1:
            raise SteradError(
                f"the field {name!r} belongs to {' and '.join(matching)}: rename it in the plugin"
            )
        parts[matching[0]][name] = value
    return parts
