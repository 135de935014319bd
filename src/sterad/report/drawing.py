"""From a figure that could be drawn to one in the page, and how many of them there are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sterad.report import svg
from sterad.results.grouping import Layout, spell
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_RUNS = 12
"""With more runs than this, only the first seed of each group gets figures of its own."""
MOST_DRAWN = 24
"""No section draws more figures than this."""
MANY_RUNS, MOST_OF_MANY = 300, 3
"""With more runs than this, no section draws more than so many: a figure takes a tenth of a second,
and a page with hundreds of them is read by nobody."""


@dataclass(frozen=True)
class Drawing:
    """A figure in the page."""

    svg: str
    name: str
    """What is drawn: the setting or the run."""
    caption: str
    """What one sees."""
    draw: Callable[[], "Figure"]
    """Draws it again, for a file of its own."""


@dataclass(frozen=True)
class Section:
    """Figures of one kind, with what they show."""

    key: str
    title: str
    text: str
    drawings: tuple[Drawing, ...]
    notes: tuple[str, ...] = ()
    """What is not drawn, and why."""
    further: tuple[Drawing, ...] = ()
    """Other seeds of the same groups, shown on demand."""
    wide: bool = False


@dataclass(frozen=True)
class Run:
    """A run that gets figures of its own."""

    name: str
    record: RunRecord
    first: bool
    """Whether it has the lowest seed of its group."""


@dataclass(frozen=True)
class Sketch:
    """A figure that is yet to be drawn."""

    draw: Callable[[], "Figure"]
    name: str
    caption: str
    first: bool = True


def chosen(layout: Layout) -> tuple[list[Run], tuple[str, ...]]:
    """Return the runs to draw one by one, and a note where that is not all of them."""
    groups = list(layout.groups())
    total = sum(len(records) for _, _, records in groups)
    seeds = 1 if total > MOST_RUNS else total
    runs = [
        Run(
            f"{row.text}, {column.text}, seed {spell(record.config.get('seed'))}", record, not place
        )
        for row, column, records in groups
        for place, record in enumerate(records[:seeds])
    ]
    if len(runs) == total:
        return runs, ()
    return runs, (f"Of {total} runs, the first seed of each of the {len(runs)} groups is drawn.",)


@dataclass(frozen=True)
class Plan:
    """A section that is yet to be drawn."""

    key: str
    """Its anchor in the page."""
    title: str
    text: str
    sketches: Sequence[Sketch]
    notes: Sequence[str] = ()
    wide: bool = False


def draw_section(plan: Plan, runs: int = 1) -> Section:
    """Draw the figures of a section in a report of so many runs, as many as there is room for."""
    most = MOST_OF_MANY if runs > MANY_RUNS else MOST_DRAWN
    left, notes = len(plan.sketches) - most, list(plan.notes)
    if left > 0:
        notes.append(
            f"The first {most} are drawn, {left} more are left out: move runs to a folder of their "
            "own to see theirs."
        )
    drawn = [
        (sketch.first, _drawing(sketch, f"{plan.key}-{number}", plan.title))
        for number, sketch in enumerate(plan.sketches[:most], 1)
    ]
    first = tuple(drawing for is_first, drawing in drawn if is_first)
    further = tuple(drawing for is_first, drawing in drawn if not is_first)
    return Section(plan.key, plan.title, plan.text, first, tuple(notes), further, plan.wide)


def _drawing(sketch: Sketch, key: str, title: str) -> Drawing:
    markup = svg.inline(sketch.draw(), key, f"{title}: {sketch.name}. {sketch.caption}")
    return Drawing(markup, sketch.name, sketch.caption, sketch.draw)
