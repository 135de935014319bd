"""The paper's protocol: the settings of its runs, and how those of a run differ from them."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sterad.results.grouping import Settings, flatten, format_value

_OFF_VALUES = (None, False, 0, "none", ())
_COMPONENTS = ("method", "dataset", "stream")
_PATHS = {"tasks": "stream.tasks", "memory": "memory", "encoder": "encoder", "width": "width"}


@dataclass(frozen=True)
class Difference:
    """One setting in which a run differs from the paper."""

    path: str
    ours: Any
    paper: Any

    @property
    def text(self) -> str:
        """The difference in words.

        >>> Difference("dataset.image_size", 16, 32).text
        'image size 16 (paper 32)'
        """
        component, _, field = self.path.rpartition(".")
        name = component if field == "name" else field.replace("_", " ")
        return f"{name} {_format(self.ours)} (paper {_format(self.paper)})"


def _format(value: Any) -> str:
    return "off" if value in _OFF_VALUES else format_value(value)


@cache
def load_protocol() -> dict[str, Any]:
    """Return the content of protocol.toml."""
    return tomllib.loads(files(__package__).joinpath("protocol.toml").read_text(encoding="utf-8"))


def find_overrides(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a table cell that differ from its method and dataset, by option names."""
    values: dict[str, Any] = {}
    for override in load_protocol()["override"]:
        if all(settings.get(name) == value for name, value in override["for"].items()):
            values |= override["set"]
    return values


def paper_settings(settings: Mapping[str, Any]) -> Settings:
    """Return the relevant settings, by dotted names, of a run under the paper's protocol.

    settings: those of a number, by option names of the command line.
    """
    raw, method, dataset = load_protocol(), settings["method"], settings["dataset"]
    full: Settings = dict(raw["common"])
    full |= {f"stream.{k}": v for k, v in raw["stream"].get(settings["stream"], {}).items()}
    for name, value in raw["dataset"].get(dataset, {}).items():
        full["stream.tasks" if name == "tasks" else f"dataset.{name}"] = value
    full |= {f"method.{name}": value for name, value in raw["method"].get(method, {}).items()}
    for name, value in {**settings, **find_overrides(settings)}.items():
        full[f"{name}.name" if name in _COMPONENTS else _PATHS.get(name, f"method.{name}")] = value
    return relevant_settings(full)


def relevant_settings(config: Mapping[str, Any]) -> Settings:
    """Return the settings that determine the final accuracy, by dotted names.

    Settings that are switched off are left out. Sizes of a dataset that the config does not reduce
    are its native ones.
    """
    raw, flat = load_protocol(), flatten(config)
    native = raw["dataset"].get(flat.get("dataset.name"), {})
    sizes = {f"dataset.{name}": value for name, value in native.items() if name != "tasks"}
    flat |= {path: value for path, value in sizes.items() if flat.get(path) is None}
    unused = "momentum" if flat.get("method.optimizer") == "adam" else "beta2"
    ignored = {*raw["ignored"], f"method.{unused}"}
    return {
        path: value
        for path, value in flat.items()
        if path not in ignored and value not in _OFF_VALUES and value != raw["default"].get(path)
    }


def find_differences(ours: Settings, paper: Settings) -> tuple[Difference, ...]:
    """Return the differences of relevant settings.

    For another method, dataset or stream, only its name is a difference, not its fields.

    >>> find_differences({"width": 20, "memory": 500}, {"width": 64, "memory": 500})
    (Difference(path='width', ours=20, paper=64),)
    """
    other = [part for part in _COMPONENTS if ours.get(f"{part}.name") != paper.get(f"{part}.name")]
    hidden = tuple(f"{part}." for part in other)
    paths = [path for path in {**paper, **ours} if ours.get(path) != paper.get(path)]
    return tuple(
        Difference(path, ours.get(path), paper.get(path))
        for path in sorted(paths, key=lambda path: not path.endswith(".name"))
        if path.endswith(".name") or not path.startswith(hidden)
    )


def without_method(settings: Settings, excluded: tuple[str, ...] = ()) -> Settings:
    """Return the settings that are not of the method, without the excluded paths."""
    return {k: v for k, v in settings.items() if not k.startswith("method.") and k not in excluded}


def fewest_differences(candidates: Iterable[tuple[Difference, ...]]) -> tuple[Difference, ...]:
    """Return the shortest candidate; another dataset or stream counts more than any number."""
    return min(
        candidates, key=lambda found: (sum(d.path.endswith(".name") for d in found), len(found))
    )
