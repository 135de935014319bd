"""RunConfig: every value of a run, frozen and hashed to its id."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from sterad.classifiers import CLASSIFIERS
from sterad.data import DATASETS
from sterad.data.user_files import UserFiles
from sterad.encoders import EncoderOptions, resolve_encoder
from sterad.encoders.make import name_without_folder
from sterad.encoders.weights import weights_digest
from sterad.engine import Execution
from sterad.errors import SteradError
from sterad.memory import MEMORIES
from sterad.methods import METHODS, Problem
from sterad.plugins import source_digest
from sterad.registry import Registry
from sterad.sphere import LAWS
from sterad.streams import STREAMS
from sterad.validation import (
    Count,
    MemorySize,
    Range,
    Seed,
    Width,
    build,
    check_value,
    field_names,
    resolve_field_name,
    unknown_field,
)
from sterad.views import AUGMENTATIONS

KINDS: dict[str, tuple[Registry[Any], str]] = {
    "method": (METHODS, "agd-fd"),
    "dataset": (DATASETS, "digits"),
    "stream": (STREAMS, "clear"),
}
"""Registry and default of each kind of component that a run has."""
PART_REGISTRIES: dict[str, Registry[Any]] = {
    "augmentation": AUGMENTATIONS,
    "classifier": CLASSIFIERS,
    "law": LAWS,
    "memory_policy": MEMORIES,
}
"""Fields of methods that name registered components, whose code is part of the id if it is the
user's own."""
RESERVED_NAMES = {*KINDS, "name", "digests"}
"""Keys of `RunConfig.to_dict`, which no field may have."""


@dataclass(frozen=True)
class CommonSettings:
    """Settings of the stream, the memory and the evaluations."""

    seed: Seed = 0
    """Seed of label order, stream, network, views and memory."""
    memory: MemorySize = 200
    """Capacity of the memory in images."""
    encoder: str | None = None
    """Encoder, timm:NAME, torchvision:NAME, hf:NAME or FILE.py:FUNCTION; `sterad list encoders`
    lists all (default: the method's, mostly resnet18)."""
    width: Width | None = None
    """Channels of the encoder's first stage (default: the usual width for the dataset)."""
    anytime: Count = 10
    """Number of evaluations, evenly spaced along the stream."""
    test_then_train: bool = False
    """Also predict each stream image just before it is learned from."""
    validation: Annotated[float, Range(0, 0.5)] = 0.0
    """Share of the training images of each class that replace the test images."""


@dataclass(frozen=True)
class RunSettings(EncoderOptions, CommonSettings):
    """Settings that every method has in common."""

    def to_dict(self, with_paths: bool = False) -> dict[str, Any]:
        """Return all values, without the paths of the encoder's files by default."""
        values = identifying_values(self, with_paths)
        if self.encoder is not None and not with_paths:
            values["encoder"] = name_without_folder(self.encoder)
        return values


def identifying_values(config: Any, with_paths: bool = False) -> dict[str, Any]:
    """Return the values of a dataclass's fields, without the paths of files.

    The id must not depend on where files are. It does not depend either on fields that were added
    after runs had been recorded, while they have their default.
    """
    values = dataclasses.asdict(config)
    for field in dataclasses.fields(config):
        is_default = values[field.name] == field.default
        is_omitted = is_default and field.metadata.get("omit_default_from_id")
        if is_omitted or (field.metadata.get("place") and not with_paths):
            del values[field.name]
    return values


@dataclass(frozen=True)
class ComponentConfig:
    """A registered component and the values of its fields."""

    name: str
    fields: Any

    def to_dict(self, with_paths: bool = False) -> dict[str, Any]:
        """Return the name and the fields as one dictionary, without the paths of data files."""
        return {"name": self.name} | identifying_values(self.fields, with_paths)


def contents_digest(dataset: Any) -> str | None:
    """Return the digest of the user's own data; None for datasets with known checksums."""
    if isinstance(dataset, UserFiles) or source_digest(type(dataset)):
        digest: str = dataset.load().digest
        return digest
    return None


@dataclass(frozen=True)
class RunConfig:
    """A method on a stream of a dataset under the same settings for every method."""

    method: ComponentConfig
    dataset: ComponentConfig
    stream: ComponentConfig
    settings: RunSettings
    digests: tuple[tuple[str, str], ...] = ()
    """Digests of the user's own data and code, by kind: a run depends on them beside its fields."""

    @classmethod
    def of(cls, **values: Any) -> "RunConfig":
        """Build from flat names, as the command line and study files give them.

        >>> config = RunConfig.of(method="agd-fd", stream="blurry", variance=3, seed=1)
        >>> config.method.fields.variance, config.stream.fields.tasks, config.settings.width
        (3.0, 5, 20)
        """
        return cls.from_values(values)

    @classmethod
    def from_values(
        cls,
        values: Mapping[str, Any],
        find_digest: Callable[[Any], str | None] = contents_digest,
    ) -> "RunConfig":
        """Build from flat names; `find_digest` returns the digest of a dataset."""
        given = {resolve_field_name(name): value for name, value in values.items()}
        names = {
            kind: registry.resolve(check_value(kind, given.pop(kind, default), str))
            for kind, (registry, default) in KINDS.items()
        }
        components = {kind: registry[names[kind]] for kind, (registry, _) in KINDS.items()}
        owners = {"settings": RunSettings, **components, "method": components["method"].Config}
        where = f"a run of {names['method']} on {names['stream']} {names['dataset']}"
        parts = route_fields(given, owners, where)
        dataset = build(owners["dataset"], parts["dataset"])
        defaults = dataset.defaults()
        for part, name in (("stream", "tasks"), ("stream", "scale"), ("settings", "width")):
            if name in field_names(owners[part]) and parts[part].get(name) is None:
                parts[part][name] = getattr(defaults, name)
        settings: RunSettings = build(RunSettings, parts["settings"])
        encoder = settings.encoder or components["method"].default_encoder
        encoder, components["encoder"] = resolve_encoder(encoder)
        settings = dataclasses.replace(settings, encoder=encoder)
        method = build(owners["method"], parts["method"])
        for field, registry in PART_REGISTRIES.items():
            if (name := getattr(method, field, "")) in registry:
                method = dataclasses.replace(method, **{field: registry.resolve(name)})
                components[field.replace("_", " ")] = registry[name]
        stream = build(owners["stream"], parts["stream"])
        if hasattr(stream, "with_hash"):  # it reads a file
            stream = stream.with_hash()
        digests = {f"{kind} code": source_digest(one) for kind, one in components.items()}
        digests["data"] = find_digest(dataset)
        digests["weights"] = weights_digest(settings.weights) if settings.weights else None
        return cls(
            ComponentConfig(names["method"], method),
            ComponentConfig(names["dataset"], dataset),
            ComponentConfig(names["stream"], stream),
            settings,
            tuple((kind, digest) for kind, digest in sorted(digests.items()) if digest),
        )

    def to_dict(self, with_paths: bool = False) -> dict[str, Any]:
        """Return everything as JSON values, without the paths of data files by default."""
        parts = {kind: getattr(self, kind).to_dict(with_paths) for kind in KINDS}
        parts |= self.settings.to_dict(with_paths)
        if self.digests:
            parts["digests"] = dict(self.digests)
        values: dict[str, Any] = json.loads(json.dumps(parts, default=str))
        return values

    def problem(
        self,
        input_shape: tuple[int, ...],
        execution: Execution,
        classes: int | None = None,
        flip: bool = False,
        announced: bool = False,
    ) -> Problem:
        """Return what a learner is built from, for inputs of a shape."""
        settings = self.settings
        return Problem(
            input_shape=input_shape,
            classes=classes,
            memory=settings.memory,
            flip=flip,
            encoder=settings.encoder or METHODS[self.method.name].default_encoder,
            width=settings.width or self.dataset.fields.defaults().width,
            seed=settings.seed,
            announced=announced,
            execution=execution,
            encoder_options=EncoderOptions.of(settings),
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Return the config of `to_dict()`; refuse data or code that have changed since."""
        flat = {name: value for name, value in values.items() if name not in (*KINDS, "digests")}
        for kind in KINDS:
            flat |= values[kind] | {kind: values[kind]["name"]}
        del flat["name"]
        made = cls.of(**flat)
        if changed := changed_digests(dict(made.digests), values.get("digests", {})):
            raise SteradError(
                f"the {' and the '.join(changed)} differ from those of the request for this run: "
                "bring the same to this machine, or request it again"
            )
        return made

    @property
    def id(self) -> str:
        """Return method, dataset, stream and seed, and a hash of everything."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        parts = (self.method.name, self.dataset.name, self.stream.name, f"s{self.settings.seed}")
        return "-".join((*parts, digest))


def changed_digests(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the kinds of data and code in which two runs differ."""
    return [kind for kind in sorted({*first, *second}) if first.get(kind) != second.get(kind)]


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
