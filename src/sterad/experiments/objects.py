"""Objects in place of names: a method, dataset, stream or part that a run is given in Python.

An object is identified by its code and its values (see `plugins.object_digest`): equal objects give
equal ids in every process. An object of a registered class is the same as its name and its fields.
"""

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from numbers import Number
from pathlib import Path
from typing import Any

import torch

from sterad.data import Dataset, Defaults
from sterad.errors import SteradError
from sterad.methods import METHODS
from sterad.plugins import object_digest
from sterad.registry import Registry
from sterad.seeds import generator
from sterad.streams import Stream

PART_NAMES = ("encoder", "memory", "retrieval", "optimizer", "augmentation", "classifier")
"""Parts of a learner that can be objects, as `build_learner` takes them."""
DIGEST_SUFFIX = " object"
"""End of the keys of `RunConfig.digests` that identify objects."""


def is_object(value: Any) -> bool:
    """Return whether a value is an object and not a name, a number or a list of them."""
    return not isinstance(value, str | bytes | Number | list | tuple | Mapping | Path | None)


def describe_object(value: Any) -> str:
    """Return a readable description that is the same in every process.

    >>> describe_object(torch.nn.Linear(3, 2)), describe_object(describe_object)
    ('Linear of 8 weights', 'describe_object')
    """
    if isinstance(value, torch.nn.Module):
        count = sum(weight.numel() for weight in value.parameters())
        return f"{type(value).__name__} of {count:,} weights"
    if hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    shown = [
        f"{name}={attribute!r}"
        for name, attribute in getattr(value, "__dict__", {}).items()
        if type(attribute) in (str, int, float, bool) and not name.startswith("_")
    ]
    return f"{type(value).__name__}({', '.join(shown)})"


@dataclass(frozen=True)
class DatasetObject:
    """The config of a `Dataset` in memory, which `digests` of the run identifies."""

    object: str
    """Description of the arrays."""
    flip: bool
    dataset: InitVar[Dataset]
    own_defaults: InitVar[Defaults | None] = None

    def __post_init__(self, dataset: Dataset, own_defaults: Defaults | None) -> None:
        counts = dataset.classes, len(dataset.train_labels)
        # Not fields: a dictionary of fields must not copy the arrays.
        object.__setattr__(self, "_dataset", dataset)
        object.__setattr__(self, "_defaults", own_defaults or Defaults.for_counts(*counts))

    def load(self) -> Dataset:
        """Return the dataset."""
        dataset: Dataset = vars(self)["_dataset"]
        return dataset

    def defaults(self) -> Defaults:
        """Return the defaults of the object, else tasks and blur from the counts."""
        defaults: Defaults = vars(self)["_defaults"]
        return defaults


@dataclass(frozen=True)
class StreamObject:
    """The config of a stream whose class is not registered."""

    object: str
    """Description of the object."""
    stream: InitVar[Any]

    def __post_init__(self, stream: Any) -> None:
        object.__setattr__(self, "_stream", stream)

    def with_defaults(self, defaults: Defaults) -> "StreamObject":
        """Return the stream with the dataset's tasks and scale where the object has None."""
        stream = vars(self)["_stream"]
        empty = [name for name in ("tasks", "scale") if getattr(stream, name, 0) is None]
        if not empty or not dataclasses.is_dataclass(stream):
            return self
        values = {name: getattr(defaults, name) for name in empty}
        filled = dataclasses.replace(stream, **values)  # type: ignore[type-var]
        return StreamObject(describe_object(filled), filled)

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream that the object opens."""
        stream = vars(self)["_stream"].open(dataset, seed)
        if not isinstance(stream, Stream):
            raise SteradError(
                f"open() of {self.object} returns a {type(stream).__name__}: return a "
                "sterad.streams.Stream"
            )
        return stream


def take_parts(values: dict[str, Any], registries: Mapping[str, Registry[Any]]) -> dict[str, Any]:
    """Remove the objects among the values of a run that are parts, and return them.

    Registered classes are replaced by their names. A memory is given as `memory` or
    `memory_policy`, and sets the capacity; a class or another function of a capacity and a
    generator leaves it as it is.
    """
    for name, registry in registries.items():
        if known := registry.name_of(values.get(name)):
            values[name] = known
    names = [name for name in (*PART_NAMES, "memory_policy") if _is_part(name, values.get(name))]
    parts = {name: values.pop(name) for name in names}
    if "memory_policy" in parts:
        if "memory" in parts:
            raise SteradError("memory and memory_policy are both objects: give one of them")
        parts["memory"] = parts.pop("memory_policy")
    if "memory" in parts and not _is_memory_factory(parts["memory"]):
        memory = parts["memory"]
        capacity = getattr(memory, "capacity", None)
        if capacity is None or values.setdefault("memory", capacity) != capacity:
            raise SteradError(
                f"the memory {describe_object(memory)} has the capacity {capacity} and memory is "
                f"{values.get('memory')}: give a memory with a capacity, and no other number"
            )
    return parts


def _is_part(name: str, value: Any) -> bool:
    """Return whether an object can be a part; others are refused as the values of fields."""
    if name == "retrieval":
        return is_object(value)
    is_memory = name in ("memory", "memory_policy") and hasattr(value, "update")
    return is_object(value) and (callable(value) or is_memory)


def _is_memory_factory(memory: Any) -> bool:
    return isinstance(memory, type) or (callable(memory) and not hasattr(memory, "capacity"))


def part_digests(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests that identify the objects of parts."""
    return {f"{name}{DIGEST_SUFFIX}": object_digest(part) for name, part in parts.items()}


def describe_parts(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return descriptions of parts by the names of the fields that they replace."""
    fields = {"memory": "memory_policy"}  # the field `memory` is the capacity
    return {fields.get(name, name): describe_object(part) for name, part in parts.items()}


def copy_parts(
    parts: Mapping[str, Any], digests: Mapping[str, str], capacity: int, seed: int
) -> dict[str, Any]:
    """Return copies of the parts for one run, which does not change the objects of the user.

    Raise if an object has changed since its digest was computed: the id would not be that of the
    run.
    """
    for key, digest in part_digests(parts).items():
        if digest != digests[key]:
            raise SteradError(
                f"the {key.removesuffix(DIGEST_SUFFIX)} has changed since the config was made: "
                "make the config again from the object as it is now"
            )
    copies = {name: _copy_part(name, part) for name, part in parts.items()}
    if "memory" in parts and _is_memory_factory(parts["memory"]):
        copies["memory"] = parts["memory"](capacity, generator(seed, "memory"))
    return copies


def _copy_part(name: str, part: Any) -> Any:
    try:
        return copy.deepcopy(part)
    except Exception as error:  # the object's own code can raise any exception
        raise SteradError(
            f"the {name} {describe_object(part)} cannot be copied ({error}): give a function that "
            "returns a new one"
        ) from error


def refuse_objects(values: Mapping[str, Any]) -> None:
    """Raise if a dictionary of a config describes objects, which only Python can pass on."""
    keys = [key for key in values.get("digests", {}) if key.endswith(DIGEST_SUFFIX)]
    kinds = [key.removesuffix(DIGEST_SUFFIX) for key in keys]
    if values["method"]["name"] not in METHODS:
        kinds.insert(0, f"method {values['method']['name']!r}")
    if kinds:
        raise SteradError(
            f"the {' and the '.join(kinds)} of this run cannot be read from its config: register "
            "each in a plugin (--plugin FILE) and give its name, or call run() with the objects"
        )
