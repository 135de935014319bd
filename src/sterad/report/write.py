"""Write a report of all runs in a folder: HTML page, Markdown, LaTeX, CSV and figure files."""

import dataclasses
import io
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sterad.errors import SteradError
from sterad.files import write_atomically
from sterad.optional_imports import require_extra
from sterad.report.cost_table import CostRow
from sterad.report.page import Content, compose, render
from sterad.report.section import ReportFigure, Section
from sterad.report.style import can_draw, replace_invalid, use_theme
from sterad.report.table_formats import (
    cells_csv,
    escape_markdown,
    latex_document,
    runs_csv,
    to_csv,
    to_markdown,
)
from sterad.report.tables import MetricTable, collect_footnotes, format_summary
from sterad.report.text import format_duration, format_quantity
from sterad.results.record import RunRecord
from sterad.results.run_directory import describe_left_out, read_records

COST_REMARK = (
    "Means over seeds, for each batch of the stream; a pass without gradients counts as a third."
)
CELLS_REMARK = "Mean ± sample standard deviation over n seeds, in percent."
TABLES_ONLY = (
    "the report has no figures because matplotlib is not installed: pip install 'sterad[report]'"
)
_FIGURE_FORMATS = {
    # Without dates, equal figures are equal files.
    "pdf": {"metadata": {"CreationDate": None, "Producer": None, "Creator": None}},
    "png": {"dpi": 200, "facecolor": "white", "metadata": {"Software": None}},
}


def write_report(
    out: Path,
    figures: bool = False,
    show_tables: Callable[[Sequence[MetricTable]], object] | None = None,
    paper: bool = False,
    equal_cost: bool = False,
) -> Path:
    """Report all runs under `out` in one HTML page, `out/report.html`, and return its path.

    Files beside it have the same stem: `.md` and `.tex` with the tables, `-runs.csv` and
    `-cells.csv`; `figures` adds a folder `-figures` of PDF and PNG files, `paper` a comparison with
    the paper to the page; `equal_cost` compares only methods whose pixels per batch are within
    10 %. `show_tables` receives the tables. A record that cannot be read is left
    out, with a sentence on standard error. Equal records give equal bytes.
    """
    records, left_out = _read_finished_runs(out)
    if figures:
        require_extra("matplotlib", "report")
    content = compose(records, left_out, paper=paper, equal_cost=equal_cost)
    if not can_draw():
        print(TABLES_ONLY, file=sys.stderr)
        content = dataclasses.replace(content, sections=())
    page = out / "report.html"
    write_atomically(page, render(content))
    texts = {
        "report.md": markdown_report(content),
        "report.tex": latex_document(content.tables, _remarks(content)),
        "report-runs.csv": runs_csv(content.records),
        "report-cells.csv": cells_csv(content.tables),
    }
    for name, text in texts.items():
        write_atomically(out / name, replace_invalid(text))
    if figures:
        write_figures(content.sections, out / "report-figures")
    if show_tables is not None:  # last, as a closed pipe (`| head`) ends the process here
        show_tables(content.tables)
    return page


def _read_finished_runs(out: Path) -> tuple[list[RunRecord], list[str]]:
    records, left_out = read_records(out)
    for sentence in describe_left_out(records, left_out):
        print(sentence, file=sys.stderr)
    if not records:
        raise SteradError(
            f"{str(out)!r} has no finished run{' that can be read' if left_out else ''}: "
            f"`sterad train agd-fd --out {out}` creates one"
        )
    return records, left_out


def _remarks(content: Content) -> list[str]:
    common = content.layout.common
    return [CELLS_REMARK, *([f"In all runs: {', '.join(common)}."] if common else [])]


def markdown_report(content: Content) -> str:
    """Return the tables of the page in Markdown."""
    parts = ["# Results\n", *(f"{escape_markdown(remark)}\n" for remark in _remarks(content))]
    for table in content.tables:
        parts += [f"## {table.title}\n", f"{table.remark}.\n", to_markdown(table)]
    if content.costs:
        parts += ["## Cost\n", f"{COST_REMARK}\n", _cost_markdown(content.costs)]
    if notes := collect_footnotes(content.tables):
        parts += ["## Notes\n", *(f"- {escape_markdown(note)}" for note in notes), ""]
    if content.left_out:
        lines = [f"- {escape_markdown(line)}" for line in content.left_out]
        parts += [f"## Left out: {len(content.left_out)}\n", *lines, ""]
    return "\n".join(parts)


def _cost_markdown(rows: Sequence[CostRow]) -> str:
    heads = ("method", "setting", "pixels", "multiply-adds", "state (MiB)", "time", "accuracy")
    lines = [f"| {' | '.join(heads)} |", "|:--|:--|" + "--:|" * (len(heads) - 2)]
    for row in rows:
        numbers = (
            format_quantity(row.pixels),
            format_quantity(row.multiply_adds),
            f"{row.state_bytes / 2**20:.1f}",
            format_duration(row.seconds),
            format_summary(row.accuracy),
        )
        names = map(escape_markdown, (row.method, row.setting))
        lines.append(f"| {' | '.join((*names, *numbers))} |")
    return "\n".join(lines) + "\n"


def write_figures(sections: Iterable[Section], folder: Path) -> None:
    """Write each figure as PDF and PNG, and a list of all figures, `figures.csv`."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise SteradError(
            f"cannot create the folder {str(folder)!r} for figures: {error.strerror}"
        ) from error
    rows = []
    for section in sections:
        ordered = sorted(section.figures, key=lambda figure: not figure.is_first_seed)
        for number, figure in enumerate(ordered, 1):
            stem = f"{section.key}-{number}-{to_file_name(figure.name)}"
            _write_figure(figure, folder, stem)
            row = {"file": stem, "section": section.title, "figure": figure.name}
            rows.append({**row, "caption": figure.caption})
    write_atomically(folder / "figures.csv", to_csv(rows))


def _write_figure(figure: ReportFigure, folder: Path, stem: str) -> None:
    drawn = figure.draw()
    with use_theme():
        for suffix, options in _FIGURE_FORMATS.items():
            buffer = io.BytesIO()
            drawn.savefig(buffer, format=suffix, **options)  # type: ignore[arg-type]
            write_atomically(folder / f"{stem}.{suffix}", buffer.getvalue())


def to_file_name(name: str, limit: int = 60) -> str:
    """Return a name with only letters, digits and hyphens, for file systems and LaTeX.

    >>> to_file_name("digits, blurry: κ² = 1 / variance")
    'digits-blurry-1-variance'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:limit].rstrip("-") or "figure"
