"""Sections of the report: figures of one kind, their text, and limits on their number."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sterad.report.tables import percent
from sterad.results.grouping import Layout, flatten, format_value
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_RUNS = 12
"""With more runs than this, only the first seed of each group gets its own figures."""
MAX_FIGURES = 24
"""Largest number of figures in a section."""
LARGE_REPORT_RUNS, MAX_FIGURES_LARGE = 300, 3
"""With more runs than this, a section has at most three figures: each takes a tenth of a second."""

Methods = Sequence[tuple[str, Sequence[RunRecord]]]
"""Names of methods with their records in one setting."""


@dataclass(frozen=True)
class ReportFigure:
    """A figure with its name and caption; it is drawn when the page or a file is written."""

    draw: Callable[[], "Figure"]
    name: str
    """The setting or the run."""
    caption: str
    is_first_seed: bool = True
    """Other seeds of the same group are folded in the page."""


@dataclass(frozen=True)
class Section:
    """Figures of one kind."""

    key: str
    """The anchor in the page."""
    title: str
    text: str
    figures: tuple[ReportFigure, ...]
    notes: tuple[str, ...] = ()
    """What is not drawn, and why."""
    is_wide: bool = False

    def limit_figures(self, runs: int) -> "Section":
        """Return the section without the figures that exceed the limit of a report of `runs`."""
        limit = MAX_FIGURES_LARGE if runs > LARGE_REPORT_RUNS else MAX_FIGURES
        omitted = len(self.figures) - limit
        if omitted <= 0:
            return self
        note = (
            f"The first {limit} figures are drawn, {omitted} more are omitted: "
            "report a folder with fewer runs to see them."
        )
        return replace(self, figures=self.figures[:limit], notes=(*self.notes, note))


def without_repeated_notes(sections: Iterable[Section]) -> list[Section]:
    """Return the sections without the notes that an earlier section has."""
    shown: set[str] = set()
    result = []
    for section in sections:
        new = tuple(note for note in section.notes if note not in shown)
        shown.update(new)
        result.append(replace(section, notes=new))
    return result


@dataclass(frozen=True)
class Run:
    """A run that gets its own figures."""

    name: str
    record: RunRecord
    is_first_seed: bool
    """Whether it has the lowest seed of its group."""


def choose_runs(layout: Layout) -> tuple[list[Run], tuple[str, ...]]:
    """Return the runs that get their own figures, and a note if these are not all runs."""
    groups = list(layout.groups())
    total = sum(len(records) for _, _, records in groups)
    seeds = 1 if total > MAX_RUNS else total
    runs = [
        Run(f"{row.text}, {column.text}, seed {seed_of(record)}", record, is_first_seed=not index)
        for row, column, records in groups
        for index, record in enumerate(records[:seeds])
    ]
    if len(runs) == total:
        return runs, ()
    return runs, (f"Of {total} runs, the first seed of each of the {len(runs)} groups is drawn.",)


def run_figures(
    runs: Sequence[Run], draw: Callable[[RunRecord], "Figure"], describe: Callable[[RunRecord], str]
) -> tuple[ReportFigure, ...]:
    """Return a figure per run; `describe` returns its caption."""
    return tuple(
        ReportFigure(partial(draw, run.record), run.name, describe(run.record), run.is_first_seed)
        for run in runs
    )


def methods_by_setting(layout: Layout) -> Iterator[tuple[str, Methods]]:
    """Yield the name of each setting and all methods with their records; some may have none."""
    for column, setting in enumerate(layout.columns):
        methods = [(name.text, layout.cell(row, column)) for row, name in enumerate(layout.rows)]
        yield setting.text, methods


def method_names(runs: Sequence[Run]) -> list[str]:
    """Return the distinct names of the methods of runs."""
    return sorted({format_value(flatten(run.record.config).get("method.name")) for run in runs})


def note_methods_without(names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return a note that these methods have no such thing; nothing without names.

    >>> note_methods_without(["er", "lump", "scr"], "fixed directions")
    ('er, lump and scr have no fixed directions.',)
    """
    if not names:
        return ()
    joined = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return (f"{joined} {'has' if len(names) == 1 else 'have'} no {what}.",)


def seed_of(record: RunRecord) -> str:
    """Return the seed as text."""
    return format_value(record.config.get("seed"))


def join_ranked(values: dict[str, float], unit: str, highest_first: bool = False) -> str:
    """Return the first three names with their values, and the number of the others."""
    ordered = sorted(values.items(), key=lambda pair: pair[1], reverse=highest_first)
    return join_names([f"{name} {percent(value)} {unit}" for name, value in ordered], limit=3)


def join_names(names: Sequence[str], limit: int = 6) -> str:
    """Return at most `limit` names in one line, and the number of the others.

    >>> join_names(["a", "b", "c"], limit=2)
    'a, b, 1 more'
    """
    more = [f"{len(names) - limit} more"] if len(names) > limit else []
    return ", ".join([*names[:limit], *more])
