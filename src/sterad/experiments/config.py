"""RunConfig: every number of a run, frozen, hashed to its id."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sterad.data import DATASETS
from sterad.encoders import ENCODERS
from sterad.errors import SteradError
from sterad.experiments.fields import build, checked, names_of, unknown
from sterad.methods import METHODS
from sterad.streams import STREAMS

RESERVED = ("method", "dataset", "stream", "name")
ALIASES = {"mem_size": "memory", "buffer_size": "memory", "num_tasks": "tasks", "n_tasks": "tasks"}


def field_named(name: str) -> str:
    """Return the field that a name on the command line or in a file means.

    >>> field_named("memory-batch"), field_named("mem-size")
    ('memory_batch', 'memory')
    """
    plain = name.replace("-", "_")
    return ALIASES.get(plain, plain)


@dataclass(frozen=True)
class Protocol:
    """What is asked of every method alike."""

    seed: int = 0
    """Seed of the label order, the stream, the network, the views and the memory."""
    memory: int = 200
    """Images that may be kept."""
    encoder: str = "resnet18"
    """Network under the head."""
    width: int | None = None
    """Channels of the encoder's first stage; the dataset's usual width where not given."""
    anytime: int = 10
    """Equal stretches of the stream after which all seen classes are tested."""
    test_then_train: bool = False
    """Also ask for the label of each stream image just before it is learnt."""
    validation: float = 0.0
    """Share of the training images of each class that is tested instead of the test images."""

    def check(self) -> None:
        """Refuse numbers that no run can have."""
        if self.memory < 0:
            raise SteradError(f"memory {self.memory} is below 0: give the number of images to keep")
        if self.anytime < 1:
            raise SteradError(f"anytime {self.anytime} is below 1: the end is always tested")
        if not 0 <= self.validation <= 0.5:
            raise SteradError(
                f"validation {self.validation} is outside 0 to 0.5: give a share, 0.1 say"
            )
        if not 0 <= self.seed < 2**32:
            raise SteradError(
                f"seed {self.seed} is outside 0 to 2**32 - 1, the seeds of label orders"
            )


@dataclass(frozen=True)
class Choice:
    """One registered thing and the values of its fields."""

    name: str
    fields: Any

    def plain(self, places: bool = False) -> dict[str, Any]:
        """Return the name and the fields as one dictionary, but for those that say where data lie.

        A folder is not what a run is: two people with one dataset in two places have one id.
        """
        left = {f.name for f in dataclasses.fields(self.fields) if f.metadata.get("place")}
        values = dataclasses.asdict(self.fields)
        return {"name": self.name} | {k: v for k, v in values.items() if places or k not in left}


@dataclass(frozen=True)
class RunConfig:
    """A method on a stream of a dataset under a protocol."""

    method: Choice
    dataset: Choice
    stream: Choice
    protocol: Protocol

    @classmethod
    def of(cls, **values: Any) -> "RunConfig":
        """Build from flat names, as the command line and study files give them.

        >>> config = RunConfig.of(method="agd-fd", stream="blurry", variance=3, seed=1)
        >>> config.method.fields.variance, config.stream.fields.tasks, config.protocol.width
        (3.0, 5, 20)
        """
        given = {field_named(name): value for name, value in values.items()}
        method = METHODS.resolve(checked("method", given.pop("method", "agd-fd"), str))
        dataset = DATASETS.resolve(checked("dataset", given.pop("dataset", "digits"), str))
        stream = STREAMS.resolve(checked("stream", given.pop("stream", "clear"), str))
        owners: dict[str, type[Any]] = {
            "protocol": Protocol,
            "method": METHODS[method].Config,
            "dataset": DATASETS[dataset],
            "stream": STREAMS[stream],
        }
        parts = deal(given, owners, f"a run of {method} on {stream} {dataset}")
        described = build(owners["dataset"], parts["dataset"])
        usual = described.defaults()
        for name in ("tasks", "scale"):
            if name in names_of(owners["stream"]) and parts["stream"].get(name) is None:
                parts["stream"][name] = getattr(usual, name)
        if parts["protocol"].get("width") is None:
            parts["protocol"]["width"] = usual.width
        protocol: Protocol = build(Protocol, parts["protocol"])
        protocol.check()
        return cls(
            Choice(method, build(owners["method"], parts["method"])),
            Choice(dataset, described),
            Choice(stream, _settled(build(owners["stream"], parts["stream"]))),
            dataclasses.replace(protocol, encoder=ENCODERS.resolve(protocol.encoder)),
        )

    def plain(self, places: bool = False) -> dict[str, Any]:
        """Return everything as JSON has it; with `places`, also where data lie."""
        named = ("method", "dataset", "stream")
        parts = {name: getattr(self, name).plain(places) for name in named}
        text = json.dumps(parts | dataclasses.asdict(self.protocol), default=str)
        plain: dict[str, Any] = json.loads(text)
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "RunConfig":
        """Return the config that `plain()` came from."""
        flat: dict[str, Any] = {}
        for name, value in plain.items():
            if isinstance(value, Mapping):
                flat |= {key: item for key, item in value.items() if key != "name"}
                flat[name] = value["name"]
            else:
                flat[name] = value
        return cls.of(**flat)

    @property
    def id(self) -> str:
        """Return a name that says the main things and a hash that says everything."""
        text = json.dumps(self.plain(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        parts = (self.method.name, self.dataset.name, self.stream.name, f"s{self.protocol.seed}")
        return "-".join((*parts, digest))


def _settled(description: Any) -> Any:
    """Return a description that names the content of the file it reads, where it reads one."""
    return description.settled() if hasattr(description, "settled") else description


def deal(
    values: Mapping[str, Any], owners: Mapping[str, type[Any]], where: str
) -> dict[str, dict[str, Any]]:
    """Give each value to the one owner that has a field of its name; `where` is for messages."""
    parts: dict[str, dict[str, Any]] = {part: {} for part in owners}
    for owner in owners.values():
        for taken in set(RESERVED) & set(names_of(owner)):
            raise SteradError(
                f"the field {taken!r} of {owner.__name__} would hide the {taken} of the run or of "
                "its parts: rename it in the plugin"
            )
    for name, value in values.items():
        mine = [part for part, owner in owners.items() if name in names_of(owner)]
        if not mine:
            known = [field for owner in owners.values() for field in names_of(owner)]
            raise unknown(name, [*known, "method", "dataset", "stream"], where)
        if len(mine) > 1:
            raise SteradError(
                f"the field {name!r} is claimed by {' and '.join(mine)}: rename it in the plugin"
            )
        parts[mine[0]][name] = value
    return parts
