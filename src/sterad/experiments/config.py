"""RunConfig: every number of a run, frozen, hashed to its id."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from sterad.data import DATASETS
from sterad.data.stored import Own
from sterad.encoders import ENCODERS
from sterad.errors import SteradError
from sterad.methods import METHODS
from sterad.plugins import source_digest
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

RESERVED = ("method", "dataset", "stream", "name", "digests")


@dataclass(frozen=True)
class RunSettings:
    """What is asked of every method alike."""

    seed: Seed = 0
    """Random seed of label order, stream, network, views and memory."""
    memory: MemorySize = 200
    """Size of the memory in images."""
    encoder: str = "resnet18"
    """Encoder; `sterad list encoders` lists all."""
    width: Width | None = None
    """Channels of the encoder's first stage (default: set by the dataset)."""
    anytime: Count = 10
    """Number of evaluations, evenly spaced along the stream."""
    test_then_train: bool = False
    """Also predict each stream image before training on it."""
    validation: Annotated[float, Range(0, 0.5)] = 0.0
    """Fraction of the training images to evaluate on instead of the test images."""


@dataclass(frozen=True)
class ComponentConfig:
    """One registered thing and the values of its fields."""

    name: str
    fields: Any

    def to_dict(self, places: bool = False) -> dict[str, Any]:
        """Return the name and the fields as one dictionary, but for those that say where data lie.

        A folder is not what a run is: two people with one dataset in two places have one id.
        """
        left = {f.name for f in dataclasses.fields(self.fields) if f.metadata.get("place")}
        values = dataclasses.asdict(self.fields)
        return {"name": self.name} | {k: v for k, v in values.items() if places or k not in left}


@dataclass(frozen=True)
class RunConfig:
    """A method on a stream of a dataset under the same settings for every method."""

    method: ComponentConfig
    dataset: ComponentConfig
    stream: ComponentConfig
    settings: RunSettings
    digests: tuple[tuple[str, str], ...] = ()
    """Of what a run depends on and no field says: the user's own data and code, by their kinds."""

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
        cls, values: Mapping[str, Any], contents: Callable[[Any], str | None] | None = None
    ) -> "RunConfig":
        """Build from flat names; `contents` gives the digest of a dataset's data, see below."""
        given = {resolve_field_name(name): value for name, value in values.items()}
        method = METHODS.resolve(check_value("method", given.pop("method", "agd-fd"), str))
        dataset = DATASETS.resolve(check_value("dataset", given.pop("dataset", "digits"), str))
        stream = STREAMS.resolve(check_value("stream", given.pop("stream", "clear"), str))
        owners: dict[str, type[Any]] = {
            "settings": RunSettings,
            "method": METHODS[method].Config,
            "dataset": DATASETS[dataset],
            "stream": STREAMS[stream],
        }
        parts = route_fields(given, owners, f"a run of {method} on {stream} {dataset}")
        described = build(owners["dataset"], parts["dataset"])
        usual = described.defaults()
        for name in ("tasks", "scale"):
            if name in field_names(owners["stream"]) and parts["stream"].get(name) is None:
                parts["stream"][name] = getattr(usual, name)
        if parts["settings"].get("width") is None:
            parts["settings"]["width"] = usual.width
        settings: RunSettings = build(RunSettings, parts["settings"])
        encoder = ENCODERS.resolve(settings.encoder)
        things = {
            "method": METHODS[method],
            "dataset": DATASETS[dataset],
            "stream": STREAMS[stream],
            "encoder": ENCODERS[encoder],
        }
        digests = {f"{kind} code": source_digest(thing) for kind, thing in things.items()}
        digests["data"] = (contents or contents_digest)(described)
        return cls(
            ComponentConfig(method, build(owners["method"], parts["method"])),
            ComponentConfig(dataset, described),
            ComponentConfig(stream, _settled(build(owners["stream"], parts["stream"]))),
            dataclasses.replace(settings, encoder=encoder),
            tuple((kind, digest) for kind, digest in sorted(digests.items()) if digest),
        )

    def to_dict(self, places: bool = False) -> dict[str, Any]:
        """Return everything as JSON has it; with `places`, also where data lie."""
        named = ("method", "dataset", "stream")
        parts = {name: getattr(self, name).to_dict(places) for name in named}
        parts |= dataclasses.asdict(self.settings)
        if self.digests:
            parts["digests"] = dict(self.digests)
        plain: dict[str, Any] = json.loads(json.dumps(parts, default=str))
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "RunConfig":
        """Return the config that `to_dict()` came from; refuse other data or code than it had."""
        flat: dict[str, Any] = {}
        for name, value in plain.items():
            if name == "digests":
                continue
            if isinstance(value, Mapping):
                flat |= {key: item for key, item in value.items() if key != "name"}
                flat[name] = value["name"]
            else:
                flat[name] = value
        made = cls.of(**flat)
        if changed := changed_digests(dict(made.digests), plain.get("digests", {})):
            raise SteradError(
                f"the {' and the '.join(changed)} differ from those that this run was asked for "
                "with: bring the same to this machine, or ask again"
            )
        return made

    @property
    def id(self) -> str:
        """Return a name that says the main things and a hash that says everything."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        parts = (self.method.name, self.dataset.name, self.stream.name, f"s{self.settings.seed}")
        return "-".join((*parts, digest))


def contents_digest(description: Any) -> str | None:
    """Return the digest of data that are the user's own; None for those of a known source."""
    if isinstance(description, Own) or source_digest(type(description)):
        digest: str = description.load().digest
        return digest
    return None


def earlier_versions(config: RunConfig, out: Path) -> list[str]:
    """Return a sentence if runs under `out` differ in their data or code alone, else none."""
    mine, kinds, runs = config.to_dict(), set[str](), []
    for folder in sorted(out.glob(f"{config.id.rpartition('-')[0]}-*")):
        try:
            other = json.loads((folder / "config.json").read_text())["config"]
            digests = other.pop("digests", {})
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue  # reading that run reports what is wrong with it
        changed = changed_digests(dict(config.digests), digests)
        if changed and other == {k: v for k, v in mine.items() if k != "digests"}:
            kinds.update(changed)
            runs.append(folder.name)
    if not runs:
        return []
    which = runs[0] if len(runs) == 1 else f"{len(runs)} earlier runs, {runs[0]} for one,"
    return [f"{which} had different {' and '.join(sorted(kinds))}: this is a new run, {config.id}"]


def changed_digests(mine: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the kinds of data and code in which two runs differ."""
    return [kind for kind in sorted({*mine, *other}) if mine.get(kind) != other.get(kind)]


def _settled(description: Any) -> Any:
    """Return a description that names the content of the file it reads, where it reads one."""
    return description.settled() if hasattr(description, "settled") else description


def route_fields(
    values: Mapping[str, Any], owners: Mapping[str, type[Any]], where: str
) -> dict[str, dict[str, Any]]:
    """Give each value to the one owner that has a field of its name; `where` is for messages."""
    parts: dict[str, dict[str, Any]] = {part: {} for part in owners}
    for owner in owners.values():
        for taken in set(RESERVED) & set(field_names(owner)):
            raise SteradError(
                f"the field {taken!r} of {owner.__name__} would hide the {taken} of the run or of "
                "its parts: rename it in the plugin"
            )
    for name, value in values.items():
        mine = [part for part, owner in owners.items() if name in field_names(owner)]
        if not mine:
            known = [field for owner in owners.values() for field in field_names(owner)]
            raise unknown_field(name, [*known, "method", "dataset", "stream"], where)
        if len(mine) > 1:
            raise SteradError(
                f"the field {name!r} is claimed by {' and '.join(mine)}: rename it in the plugin"
            )
        parts[mine[0]][name] = value
    return parts
