"""Records in a folder to `report.html` and `report.md` beside them."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from sterad.errors import SteradError
from sterad.report.page import SUMMARISED, render
from sterad.report.tables import markdown, metric_table
from sterad.report.wording import fit
from sterad.results.atomic import write_atomically
from sterad.results.grouping import lay_out
from sterad.results.reading import read_records
from sterad.results.record import RunRecord


def _to_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def write_report(
    out: Path, target: Path | None = None, tell: Callable[[str], object] = _to_stderr
) -> Path:
    """Report every `out/*/record.json` in one page, and return where it is.

    The page is `target` or `out/report.html`; the tables alone stand beside it in Markdown. `tell`
    gets a sentence for each record that was left out. The same records give the same bytes.
    """
    page = out / "report.html" if target is None else target
    if page.suffix != ".html" or page.is_dir():
        raise SteradError(f"cannot write the page to {str(page)!r}: its name must end in .html")
    records, left_out = read_records(out)
    for sentence in left_out:
        tell(sentence)
    if not records:
        raise SteradError(
            f"{str(out)!r} holds no finished run{' that can be read' if left_out else ''}: "
            f"`sterad train agd-fd --out {out}` makes one"
        )
    text = render(records, left_out)
    write_atomically(page, text)
    write_atomically(page.with_suffix(".md"), fit(tables_in_markdown(records, left_out)))
    return page


def tables_in_markdown(records: Sequence[RunRecord], left_out: Sequence[str] = ()) -> str:
    """Return the tables of the page in Markdown."""
    layout = lay_out(records)
    parts = ["# Results\n", "Mean ± sample standard deviation over n seeds, in per cent.\n"]
    if layout.common:
        parts.append(f"In all runs: {', '.join(layout.common)}.\n")
    for metric in SUMMARISED:
        table = metric_table(layout, metric)
        if not table.empty:
            parts += [f"## {table.title}\n", f"{table.remark}.\n", markdown(table)]
    if left_out:
        parts += [f"## Left out: {len(left_out)}\n", *(f"- {line}" for line in left_out), ""]
    return "\n".join(parts)
