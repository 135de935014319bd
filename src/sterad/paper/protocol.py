"""What the paper did beside what its tables say, and in what a run differs from it."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sterad.results.grouping import Settings, flatten, spell

_OFF = (None, False, 0, "none", ())
_NAMED = ("method", "dataset", "stream")
_PLACES = {"tasks": "stream.tasks", "memory": "memory", "encoder": "encoder", "width": "width"}


@dataclass(frozen=True)
class Difference:
    """One setting in which a run is not as the paper's."""

    path: str
    ours: Any
    paper: Any

    @property
    def text(self) -> str:
        """Say it in words.

        >>> Difference("dataset.image_size", 16, 32).text
        'image size 16 (paper 32)'
        """
        part, _, field = self.path.rpartition(".")
        name = part if field == "name" else field.replace("_", " ")
        return f"{name} {_said(self.ours)} (paper {_said(self.paper)})"


def _said(value: Any) -> str:
    return "off" if value in _OFF else spell(value)


@cache
def raw_protocol() -> dict[str, Any]:
    """Return protocol.toml as it stands."""
    return tomllib.loads(files(__package__).joinpath("protocol.toml").read_text(encoding="utf-8"))


def special(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a cell has beyond its method and dataset, by names of the command line."""
    extra: dict[str, Any] = {}
    for one in raw_protocol()["special"]:
        if all(settings.get(name) == value for name, value in one["for"].items()):
            extra |= one["set"]
    return extra


def expected(settings: Mapping[str, Any]) -> Settings:
    """Return the settings, by dotted names, of a run that has the paper's protocol.

    settings: those of a number, by the names of the command line.
    """
    raw, method, dataset = raw_protocol(), settings["method"], settings["dataset"]
    full: Settings = dict(raw["common"])
    full |= {f"stream.{k}": v for k, v in raw["stream"].get(settings["stream"], {}).items()}
    for name, value in raw["dataset"].get(dataset, {}).items():
        full["stream.tasks" if name == "tasks" else f"dataset.{name}"] = value
    full |= {f"method.{name}": value for name, value in raw["method"].get(method, {}).items()}
    for name, value in {**settings, **special(settings)}.items():
        full[f"{name}.name" if name in _NAMED else _PLACES.get(name, f"method.{name}")] = value
    return essential(full)


def essential(config: Mapping[str, Any]) -> Settings:
    """Return what decides the final accuracy, by dotted names, without what is switched off.

    A part of a dataset that was not cut has its native size, whether or not that was said.
    """
    raw, flat = raw_protocol(), flatten(config)
    native = raw["dataset"].get(flat.get("dataset.name"), {})
    whole = {f"dataset.{name}": value for name, value in native.items() if name != "tasks"}
    flat |= {path: value for path, value in whole.items() if flat.get(path) is None}
    inert = "momentum" if flat.get("method.optimizer") == "adam" else "beta2"
    dropped = {*raw["indifferent"], f"method.{inert}"}
    return {
        path: value
        for path, value in flat.items()
        if path not in dropped and value not in _OFF and value != raw["neutral"].get(path)
    }


def differences(ours: Settings, paper: Settings) -> tuple[Difference, ...]:
    """Return in what essential settings differ; of another dataset or stream only that it is one.

    >>> differences({"width": 20, "memory": 500}, {"width": 64, "memory": 500})
    (Difference(path='width', ours=20, paper=64),)
    """
    other = [part for part in _NAMED if ours.get(f"{part}.name") != paper.get(f"{part}.name")]
    hidden = tuple(f"{part}." for part in other)
    paths = [path for path in {**paper, **ours} if ours.get(path) != paper.get(path)]
    return tuple(
        Difference(path, ours.get(path), paper.get(path))
        for path in sorted(paths, key=lambda path: not path.endswith(".name"))
        if path.endswith(".name") or not path.startswith(hidden)
    )


def around(settings: Settings, asked: tuple[str, ...] = ()) -> Settings:
    """Return what stands around the method; what is asked about is left out."""
    return {k: v for k, v in settings.items() if not k.startswith("method.") and k not in asked}


def nearest(apart: Iterable[tuple[Difference, ...]]) -> tuple[Difference, ...]:
    """Return the fewest differences; another dataset or stream weighs more than any number."""
    return min(apart, key=lambda found: (sum(d.path.endswith(".name") for d in found), len(found)))
