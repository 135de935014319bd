"""Records in a folder to a page, Markdown, LaTeX and CSV beside them, and figures as files."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from sterad.atomic import write_atomically
from sterad.errors import SteradError
from sterad.report.figure_files import write_figures
from sterad.report.latex import document
from sterad.report.page import Content, compose, render
from sterad.report.spreadsheet import cells_csv, runs_csv
from sterad.report.tables import MetricTable, markdown
from sterad.report.wording import fit
from sterad.results.reading import left_out_in_words, read_records
from sterad.results.record import RunRecord

MEASURE = "Mean ± sample standard deviation over n seeds, in per cent."


def _to_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr)


Told = Callable[[str], object]


def records_to_report(out: Path, tell: Told = _to_stderr) -> tuple[list[RunRecord], list[str]]:
    """Read the records of a report; `tell` gets a sentence for each that is left out."""
    records, left_out = read_records(out)
    for sentence in left_out_in_words(records, left_out):
        tell(sentence)
    if not records:
        raise SteradError(
            f"{str(out)!r} holds no finished run{' that can be read' if left_out else ''}: "
            f"`sterad train agd-fd --out {out}` makes one"
        )
    return records, left_out


def write_report(
    out: Path,
    target: Path | None = None,
    tell: Told = _to_stderr,
    figures: bool = False,
    show: Callable[[MetricTable], object] | None = None,
) -> Path:
    """Report all runs under `out` in one page, and return where it is.

    The page is `target` or `out/report.html`; beside it stand, by its name, `.md` and `.tex` with
    the tables, `-runs.csv` and `-cells.csv`, and, where `figures` are wanted, a folder `-figures`
    of PDF and PNG. `tell` gets a sentence for each record that was left out, `show` each table. The
    same records give the same bytes.
    """
    page = out / "report.html" if target is None else target
    if page.suffix != ".html" or page.is_dir():
        raise SteradError(f"cannot write the page to {str(page)!r}: its name must end in .html")
    content = compose(*records_to_report(out, tell))
    write_content(content, page)
    if figures:
        write_figures(content.sections, page.with_name(f"{page.stem}-figures"))
    if show is not None:  # last, because whoever reads may leave: `| head` ends the process
        for table in content.tables:
            show(table)
    return page


def write_content(content: Content, page: Path) -> None:
    """Write the page and, beside it, everything that is text."""
    write_atomically(page, render(content))
    texts = {
        f"{page.stem}.md": tables_in_markdown(content),
        f"{page.stem}.tex": document(content.tables, remarks(content)),
        f"{page.stem}-runs.csv": runs_csv(content.records),
        f"{page.stem}-cells.csv": cells_csv(content.layout, content.tables),
    }
    for name, text in texts.items():
        write_atomically(page.with_name(name), fit(text))


def remarks(content: Content) -> Sequence[str]:
    """Return what is to be said before the tables."""
    common = content.layout.common
    return [MEASURE, *([f"In all runs: {', '.join(common)}."] if common else [])]


def tables_in_markdown(content: Content) -> str:
    """Return the tables of the page in Markdown."""
    parts = ["# Results\n", *(f"{remark}\n" for remark in remarks(content))]
    for table in content.tables:
        parts += [f"## {table.title}\n", f"{table.remark}.\n", markdown(table)]
        parts += [f"{note}\n" for note in table.footnotes]
    if content.left_out:
        lines = [f"- {line}" for line in content.left_out]
        parts += [f"## Left out: {len(content.left_out)}\n", *lines, ""]
    return "\n".join(parts)
