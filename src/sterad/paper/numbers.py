"""The numbers of the paper's five tables, each with the settings that it belongs to."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Table:
    """One table of the paper."""

    number: int
    title: str
    study: str
    """The study file that runs all of it."""


@dataclass(frozen=True)
class Number:
    """One final average accuracy of the paper, in percent."""

    table: Table
    settings: Mapping[str, Any]
    """By the names of the command line; all else is the paper's usual protocol."""
    mean: float
    std: float
    runs: int
    printed: bool
    """Whether it stands in the paper, and not only in a comment of its source."""
    quoted: bool
    """Whether it was taken from another paper, so that no run here can be held against it."""

    @property
    def where(self) -> str:
        """The settings in one line, the stream aside, which the table says."""
        named = (self.settings["method"], self.settings["dataset"])
        rest = {k: v for k, v in self.settings.items() if k not in ("method", "dataset", "stream")}
        return ", ".join((*named, *(f"{k.replace('_', ' ')} {v}" for k, v in rest.items())))


@cache
def numbers() -> tuple[Number, ...]:
    """Return every number of every table, row by row."""
    raw = tomllib.loads(files(__package__).joinpath("tables.toml").read_text(encoding="utf-8"))
    return tuple(number for table in raw["table"] for number in _of_table(table))


def _of_table(raw: Mapping[str, Any]) -> Iterator[Number]:
    table = Table(raw["number"], raw["title"], raw["study"])
    for row in raw["rows"]:
        own = {k: v for k, v in row.items() if k not in ("accuracy", "printed", "quoted")}
        for column, text in zip(raw["columns"], row["accuracy"], strict=True):
            if text:
                mean, std = map(float, text.split("±"))
                flags = (row.get("printed", True), row.get("quoted", False))
                yield Number(table, own | raw["fixed"] | column, mean, std, raw["runs"], *flags)
