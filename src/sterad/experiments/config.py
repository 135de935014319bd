"""RunConfig: every value of a run, frozen and hashed to its id."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from sterad.classifiers import CLASSIFIERS
from sterad.data import Defaults
from sterad.data.user_files import UserFiles
from sterad.encoders import EncoderOptions, resolve_encoder
from sterad.encoders.make import name_without_folder
from sterad.encoders.weights import weights_digest
from sterad.engine import Execution
from sterad.errors import SteradError
from sterad.evaluation.other_classifiers import ON_TRAINING_IMAGES
from sterad.experiments.components import KINDS, Choice, assign_fields, build_stream, choose
from sterad.experiments.objects import (
    DIGEST_SUFFIX,
    copy_parts,
    describe_object,
    describe_parts,
    part_digests,
    refuse_objects,
    take_parts,
)
from sterad.memory import MEMORIES, RETRIEVALS
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.plugins import source_digest
from sterad.registry import Registry
from sterad.sphere import LAWS
from sterad.validation import (
    OMIT_DEFAULT_FROM_ID,
    Count,
    MemorySize,
    Range,
    Seed,
    Width,
    build,
    resolve_field_name,
)
from sterad.views import AUGMENTATIONS

PART_REGISTRIES: dict[str, Registry[Any]] = {
    "augmentation": AUGMENTATIONS,
    "classifier": CLASSIFIERS,
    "law": LAWS,
    "memory_policy": MEMORIES,
    "retrieval": RETRIEVALS,
}
"""Fields of methods that name registered components, whose code is part of the id if it is the
user's own."""


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
    also_evaluate: tuple[str, ...] = field(default=(), metadata=OMIT_DEFAULT_FROM_ID)
    """Other classifiers that are evaluated on the same features: head, nearest-mean,
    linear-probe, ..., fitted to the memory, or train:linear-probe, fitted to all training images
    after the last batch; `sterad list classifiers` lists all."""


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
    for one in dataclasses.fields(config):
        is_default = values[one.name] == one.default
        is_omitted = is_default and one.metadata.get("omit_default_from_id")
        if is_omitted or (one.metadata.get("place") and not with_paths):
            del values[one.name]
    return values


@dataclass(frozen=True)
class ComponentConfig:
    """A component and the values of its fields."""

    name: str
    fields: Any
    component: Any = field(default=None, compare=False, repr=False)
    """The class of a method; None: the one that is registered under the name."""

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
    """Digests of the user's own data, code and objects, by kind: a run depends on them beside its
    fields."""
    parts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Objects in place of parts that fields name; `digests` identifies them."""

    @classmethod
    def of(cls, **values: Any) -> "RunConfig":
        """Build from flat names, as the command line and study files give them, or from objects.

        Objects are a method (a subclass of Learner), a dataset, a stream, and the parts `encoder`,
        `memory`, `retrieval`, `optimizer`, `augmentation` and `classifier`.

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
        parts = take_parts(given, PART_REGISTRIES)
        chosen = {
            kind: choose(kind, given.pop(kind, default), registry)
            for kind, (registry, default) in KINDS.items()
        }
        fields = assign_fields(given, chosen, RunSettings)
        dataset = chosen["dataset"].config or build(chosen["dataset"].component, fields["dataset"])
        defaults = dataset.defaults()
        settings, encoders = _build_settings(fields["settings"], defaults, chosen["method"], parts)
        stream = build_stream(fields["stream"], defaults, chosen["stream"])
        method, components = _build_method(fields["method"], chosen["method"])
        components |= {kind: chosen[kind].component for kind in ("dataset", "stream")} | encoders
        digests = {f"{kind} code": source_digest(one) for kind, one in components.items()}
        digests |= {f"{kind}{DIGEST_SUFFIX}": one.digest for kind, one in chosen.items()}
        digests |= {"data": find_digest(dataset), **part_digests(parts)}
        digests |= {
            f"classifier {name} code": source_digest(CLASSIFIERS[plain])
            for name in settings.also_evaluate
            if (plain := name.removeprefix(ON_TRAINING_IMAGES)) in CLASSIFIERS
        }
        digests["weights"] = weights_digest(settings.weights) if settings.weights else None
        return cls(
            ComponentConfig(chosen["method"].name, method, chosen["method"].component),
            ComponentConfig(chosen["dataset"].name, dataset),
            ComponentConfig(chosen["stream"].name, stream),
            settings,
            tuple((kind, digest) for kind, digest in sorted(digests.items()) if digest),
            parts,
        )

    def to_dict(self, with_paths: bool = False) -> dict[str, Any]:
        """Return everything as JSON values, without the paths of data files by default."""
        parts = {kind: getattr(self, kind).to_dict(with_paths) for kind in KINDS}
        parts |= self.settings.to_dict(with_paths)
        if self.digests:
            parts["digests"] = dict(self.digests)
        for name, text in describe_parts(self.parts).items():
            owner = parts["method"] if hasattr(self.method.fields, name) else parts
            owner[name] = text
        values: dict[str, Any] = json.loads(json.dumps(parts, default=str))
        return values

    @property
    def learner_class(self) -> type[Learner]:
        """Return the class of the method."""
        return self.method.component or METHODS[self.method.name]

    def build_learner(self, problem: Problem, steps: int | None = None) -> Learner:
        """Return a new learner for a problem, with copies of the objects of this config."""
        settings, digests = self.settings, dict(self.digests)
        parts = copy_parts(self.parts, digests, settings.memory, settings.seed)
        return build_learner(self.learner_class, self.method.fields, problem, steps, **parts)

    def problem(
        self,
        input_shape: tuple[int, ...],
        execution: Execution,
        classes: int | None = None,
        flip: bool = False,
        announced: bool = False,
    ) -> Problem:
        """Return what a learner is built from, for inputs of a shape."""
        settings, default = self.settings, self.learner_class.default_encoder
        return Problem(
            input_shape=input_shape,
            classes=classes,
            memory=settings.memory,
            flip=flip,
            encoder=default if "encoder" in self.parts else settings.encoder or default,
            width=settings.width or self.dataset.fields.defaults().width,
            seed=settings.seed,
            announced=announced,
            execution=execution,
            encoder_options=EncoderOptions.of(settings),
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Return the config of `to_dict()`; refuse data or code that have changed since."""
        refuse_objects(values)
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


def _build_settings(
    fields: dict[str, Any], defaults: Defaults, method: Choice, parts: Mapping[str, Any]
) -> tuple[RunSettings, dict[str, Any]]:
    """Return the settings with every default, and the registered encoder that they name."""
    if fields.get("width") is None:
        fields["width"] = defaults.width
    settings: RunSettings = build(RunSettings, fields)
    if "encoder" in parts:
        return dataclasses.replace(settings, encoder=describe_object(parts["encoder"])), {}
    named = method.component.default_encoder if settings.encoder is None else settings.encoder
    encoder, component = resolve_encoder(named)
    code = {} if component is None else {"encoder": component}  # None: a model of a library
    return dataclasses.replace(settings, encoder=encoder), code


def _build_method(fields: Mapping[str, Any], chosen: Choice) -> tuple[Any, dict[str, Any]]:
    """Return the config of a method, and the registered components that it depends on."""
    method, components = build(chosen.component.Config, fields), {"method": chosen.component}
    for part, registry in PART_REGISTRIES.items():
        if (name := getattr(method, part, "")) in registry:
            method = dataclasses.replace(method, **{part: registry.resolve(name)})
            components[part.replace("_", " ")] = registry[name]
    return method, components


def changed_digests(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the kinds of data and code in which two runs differ."""
    return [kind for kind in sorted({*first, *second}) if first.get(kind) != second.get(kind)]
