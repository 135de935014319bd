"""One page of all cells that were run or that a reference table prints, and a scatter plot.

`sterad verify RECORDS --cells PAGE.md` writes both from records alone: printed, ours, verdict,
command, commit, precision and hours of every cell.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sterad.files import write_atomically
from sterad.report.style import PALETTE, use_theme
from sterad.results.grouping import Settings
from sterad.results.record import RunRecord
from sterad_reproduction.control import CONTROL
from sterad_reproduction.numbers import Result, by_settings, group_runs, load_numbers
from sterad_reproduction.references import judge_cell, load_cells, match_cells
from sterad_reproduction.report import describe_outcome, markdown_table, shell_commands
from sterad_reproduction.verdicts import (
    MAX_STANDARD_ERRORS,
    Verdict,
    find_runs,
    judge_number,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = "Paper"
"""Name of the paper's own cells among the sources."""
CONTROL_COMMAND = "sterad study studies/reference-controls.toml --out runs"
_HEADS = ("cell", "printed", "ours", "verdict", "precision", "hours per run", "commit")


@dataclass(frozen=True)
class CellRow:
    """A printed number, our result and the verdict on it."""

    source: str
    verdict: Verdict
    printed: float
    found: Result | None


def collect_rows(records: Sequence[RunRecord], out: str) -> list[CellRow]:
    """Return all reference cells, then the numbers of the paper that were run."""
    rows = [
        CellRow(cell.source.title, judge_cell(cell, found, out), cell.mean, found)
        for cell, found in match_cells(records)
    ]
    results = by_settings(group_runs(records))
    return rows + [
        CellRow(PAPER, judge_number(number, found, out), number.mean, found)
        for number in load_numbers()
        if not number.is_quoted
        for found in find_runs(number, results)
    ]


def control_rows(rows: Iterable[CellRow], results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return a row of a table for the control on each dataset of the cells that were run.

    Its closed form does not depend on the order of the images: any stream of them will do.
    """
    datasets = {dataset_of(row.found.settings): None for row in rows if row.found is not None}
    controls = {
        dataset_of(one.settings): one for one in results if one.settings["method.name"] == CONTROL
    }
    return [
        (
            f"control: {CONTROL}, which learns no representation, {dict(dataset)['dataset.name']}",
            *("–", controls[dataset].text, "–"),
            *_describe_runs(controls[dataset].records),
        )
        for dataset in datasets
        if dataset in controls
    ]


def dataset_of(settings: Settings) -> tuple[tuple[str, object], ...]:
    """Return the settings of the dataset, without the stream and the method."""
    return tuple((k, v) for k, v in sorted(settings.items()) if k.startswith("dataset."))


def write_page(page: Path, records: Sequence[RunRecord], runs: Path) -> Path:
    """Write the page and its scatter plot, and return the path of the page."""
    rows, figure = collect_rows(records, "runs"), page.with_suffix(".svg")
    write_atomically(figure, draw_svg(rows))
    command = f"sterad verify {runs} --cells {page}"
    write_atomically(page, to_page(rows, group_runs(records), command, figure.name))
    return page


def to_page(rows: Sequence[CellRow], results: Sequence[Result], command: str, figure: str) -> str:
    """Return the page in Markdown; results: of all runs, for the controls."""
    parts = [
        f"# Every cell: printed and ours\n\nWritten by `{command}` from the committed records. "
        "Accuracies are final average accuracies in percent, ours as mean ± standard deviation. A "
        f"cell holds if both means are at most {MAX_STANDARD_ERRORS:g} standard errors apart "
        "(standard error of the difference, pooled variance); a single run uses the printed "
        "spread, and without one it is not judged. ± of each source is explained above its table.",
        f"![Ours against printed]({figure})",
    ]
    for source in dict.fromkeys(cell.source for cell in load_cells()):
        of_source = [row for row in rows if row.source == source.title]
        about = (
            f"{source.citation}, <{source.url}>. {source.protocol} Mean over {source.runs} runs; "
            f"± is {'half a ' if source.spread == '95 % interval' else 'the '}{source.spread}."
        )
        parts.append(f"## {source.title}\n\n{about}\n\n{_table(of_source, results)}")
    paper = [row for row in rows if row.source == PAPER]
    about = "Cells of the paper that were run under its protocol; ± is the standard deviation."
    parts.append(f"## {PAPER}\n\n{about}\n\n{_table(paper, results) if paper else 'None yet.'}")
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[CellRow], results: Sequence[Result]) -> str:
    controls = control_rows(rows, results)
    commands = [(row.verdict.command, row.verdict.subject) for row in rows]
    commands += [(CONTROL_COMMAND, "controls")] if controls else []
    table = markdown_table(_HEADS, [*map(_cells_of, rows), *controls])
    return f"{table}\n\n{shell_commands(commands)}"


def _cells_of(row: CellRow) -> tuple[str, ...]:
    verdict = row.verdict
    name = verdict.subject if row.source != PAPER else f"{verdict.source}: {verdict.subject}"
    records = () if row.found is None else row.found.records
    name += f" ({verdict.protocol})" if verdict.protocol else ""
    return (
        name,
        verdict.paper,
        verdict.ours or "–",
        describe_outcome(verdict),
        *_describe_runs(records),
    )


def _describe_runs(records: Sequence[RunRecord]) -> tuple[str, str, str]:
    """Return precision, hours and commits of runs."""
    return (
        _distinct(str(record.execution.get("precision", "float32")) for record in records),
        _distinct(f"{record.seconds / 3600:.2g}" for record in records),
        _distinct(str(record.provenance.get("git_commit") or "unknown")[:7] for record in records),
    )


def _distinct(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts)) or "–"


def draw_svg(rows: Sequence[CellRow]) -> bytes:
    """Return the scatter plot as an SVG file; equal rows give equal bytes."""
    written = io.BytesIO()
    with use_theme():
        draw_scatter(rows).savefig(
            written, format="svg", facecolor="white", metadata={"Date": None, "Creator": None}
        )
    return written.getvalue()


def draw_scatter(rows: Sequence[CellRow]) -> "Figure":
    """Draw ours against printed, a color per source, with the diagonal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.add_subplot()
    shown = [(row, row.found) for row in rows if row.found is not None]
    largest = max((max(row.printed, found.mean) for row, found in shown), default=50.0) * 1.08
    axes.plot([0, largest], [0, largest], color="#888888", linewidth=0.8, linestyle="--")
    for index, source in enumerate(dict.fromkeys(row.source for row, _ in shown)):
        points = [(row.printed, found) for row, found in shown if row.source == source]
        axes.errorbar(
            [printed for printed, _ in points],
            [found.mean for _, found in points],
            yerr=[found.std or 0.0 for _, found in points],
            fmt="o",
            markersize=4,
            elinewidth=0.8,
            color=PALETTE[index % len(PALETTE)],
            label=source,
        )
    axes.set(xlim=(0, largest), ylim=(0, largest), aspect="equal")
    axes.set(xlabel="printed (%)", ylabel="ours (%), bars: standard deviation")
    axes.grid(linewidth=0.4, alpha=0.5)
    if shown:
        axes.legend(loc="upper left", frameon=False)
    return figure
