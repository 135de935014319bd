"""Tables of other groups beside the paper, and verdicts on their cells from the records of runs."""

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from sterad.results.grouping import Settings
from sterad.results.record import RunRecord
from sterad.results.statistics import CONFIDENCE, t_quantile
from sterad_reproduction.numbers import Result, by_settings, group_runs, standard_errors
from sterad_reproduction.protocol import relevant_settings
from sterad_reproduction.verdicts import MAX_STANDARD_ERRORS, Outcome, Verdict, study_command

Spread = Literal["95 % interval", "standard deviation"]


@dataclass(frozen=True)
class Source:
    """A publication with a table of accuracies."""

    title: str
    citation: str
    url: str
    protocol: str
    """How its runs were made, in words."""
    runs: int
    spread: Spread
    """What is printed after ±: half a 95 % interval of the mean, or the standard deviation."""


@dataclass(frozen=True)
class Cell:
    """One printed accuracy, in percent."""

    source: Source
    name: str
    settings: Settings
    """The relevant settings of its runs, by dotted names."""
    mean: float
    spread: float | None
    study: str

    @property
    def text(self) -> str:
        """The cell as it is printed."""
        return f"{self.mean}" + ("" if self.spread is None else f" ± {self.spread}")

    @property
    def result(self) -> Result:
        """The cell in the form of the results of runs, with the standard deviation of its runs."""
        std, n = self.spread, self.source.runs
        if std is not None and self.source.spread == "95 % interval":
            std *= math.sqrt(n) / t_quantile(CONFIDENCE, n - 1)
        return Result(self.settings, self.mean, std, n)


@cache
def load_cells() -> tuple[Cell, ...]:
    """Return every cell of every source, in the order of references.toml."""
    raw = tomllib.loads(files(__package__).joinpath("references.toml").read_text(encoding="utf-8"))
    return tuple(cell for source in raw["source"] for cell in _read_source(source))


def _read_source(raw: Mapping[str, Any]) -> Iterator[Cell]:
    names = ("title", "citation", "url", "protocol", "runs", "spread")
    source = Source(**{name: raw[name] for name in names})
    for cell in raw["cell"]:
        method = {f"method.{k}": v for k, v in raw["method"][cell["method"]].items()}
        full = {"method.name": cell["method"], **raw["settings"], **method}
        settings = relevant_settings(full | cell.get("settings", {}))
        yield Cell(source, cell["name"], settings, cell["mean"], cell.get("spread"), cell["study"])


def match_cells(records: Iterable[RunRecord]) -> list[tuple[Cell, Result | None]]:
    """Return each cell with the results of our runs in each precision, None if it was not run."""
    results = by_settings(group_runs(records))
    return [
        (cell, found)
        for cell in load_cells()
        for found in results.get(frozenset(cell.settings.items()), (None,))
    ]


def judge_references(records: Iterable[RunRecord], out: str = "runs") -> tuple[Verdict, ...]:
    """Return a verdict per cell and precision; cells hold at two standard errors, as numbers do."""
    return tuple(judge_cell(cell, found, out) for cell, found in match_cells(records))


def judge_cell(cell: Cell, found: Result | None, out: str) -> Verdict:
    """Return the verdict on a cell; a single run cannot be judged if no spread is printed."""
    errors = None if found is None else standard_errors(found, cell.result)
    outcome: Outcome = "not run"
    if errors is not None:
        outcome = "holds" if abs(errors) <= MAX_STANDARD_ERRORS else "does not hold"
    return Verdict(
        kind="reference",
        source=cell.source.title,
        subject=cell.name,
        paper=f"{cell.text} ({cell.source.runs} runs)",
        ours="" if found is None else found.text,
        outcome=outcome,
        standard_errors=errors,
        protocol="",
        command=study_command(cell.study, out),
    )
