"""Tables of studies inside Markdown pages, written again from records.

A page marks the place of a table by `<!-- table: STUDY -->` and `<!-- end of table -->`; the text
between them is made from the records in the folder STUDY.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from sterad.errors import SteradError
from sterad.files import write_atomically
from sterad.report.table_formats import escape_markdown
from sterad.report.tables import MetricTable, build_table, percent
from sterad.results.grouping import Layout, lay_out
from sterad.results.moments import with_other_classifiers
from sterad.results.record import RunRecord
from sterad.results.run_directory import read_records
from sterad.results.statistics import Summary

_MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)


def update_tables(page: Path, records: Path) -> int:
    """Write all marked tables of a page again; return how many there are."""
    text = page.read_text(encoding="utf-8")
    folders = {name: records / name for _, name, _, _ in _MARKED.findall(text)}
    for name, folder in folders.items():
        if not folder.is_dir():
            raise SteradError(
                f"{str(page)!r} has a table of {name!r}, and {str(folder)!r} is no folder of "
                "records: add the records, or remove the table"
            )
    tables = {name: study_table(read_records(folder)[0]) for name, folder in folders.items()}
    written = _MARKED.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n\n{found[4]}", text)
    if written != text:
        write_atomically(page, written)
    return len(folders)


def study_table(records: Sequence[RunRecord]) -> str:
    """Return the final average accuracies of all runs, best first, and what they cost."""
    layout = lay_out(with_other_classifiers(records))
    table = build_table(layout)
    heads = [column.text for column in layout.columns]
    costs = ["precision", "images per batch", "hours per run"]
    lines = ["| method | " + " | ".join([*map(escape_markdown, heads), *costs]) + " |"]
    lines.append("|:--|" + "--:|" * (len(heads) + len(costs)))
    for row in sorted(range(len(layout.rows)), key=lambda row: _order(table, row)):
        label, cells = table.rows[row]
        texts = [_format(cell) for cell in cells]
        lines.append("| " + " | ".join([label.text, *texts, *_costs(layout, row)]) + " |")
    return "\n".join(lines)


def _order(table: MetricTable, row: int) -> tuple[float, str]:
    label, cells = table.rows[row]
    means = [cell.mean for cell in cells if cell is not None]
    return -fmean(means), label.text


def _format(cell: Summary | None) -> str:
    if cell is None:
        return ""
    spread = "" if cell.std is None else f" ± {percent(cell.std)}"
    return f"{percent(cell.mean)}{spread} (n={cell.n})"


def _costs(layout: Layout, row: int) -> list[str]:
    """Return precisions, mean images per batch and mean hours of the runs of a row."""
    cells = (layout.cell(row, column) for column in range(len(layout.columns)))
    records = [record for cell in cells for record in cell]
    precisions = sorted({str(one.execution.get("precision", "float32")) for one in records})
    images, hours = (
        fmean(values)
        for values in ([r.images_per_batch for r in records], [r.seconds / 3600 for r in records])
    )
    return [", ".join(precisions), f"{images:.0f}", f"{hours:.2g}"]
