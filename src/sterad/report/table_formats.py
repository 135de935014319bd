"""Tables as Markdown, terminal output, LaTeX (booktabs) and CSV."""

import csv
import html
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sterad.report.tables import (
    NO_MARKS,
    MetricTable,
    build_table,
    collect_footnotes,
    format_summary,
    percent,
)
from sterad.results.grouping import Label, flatten, lay_out
from sterad.results.moments import with_other_classifiers
from sterad.results.record import METRICS, RunRecord
from sterad.results.statistics import SHORT_RULE, Summary

if TYPE_CHECKING:
    from rich.table import Table

MAX_LATEX_ROWS = 40
"""Rows of a LaTeX table that fit on a page."""
MAX_LATEX_COLUMNS = 4
"""Columns that fit the text width; wider tables are scaled down."""
_COSTS = (
    "seconds",
    "images_per_second",
    "images_per_step",
    "consolidation_images",
    "peak_memory_bytes",
    "pixels_per_batch",
    "multiply_adds_per_batch",
    "state_bytes",
)
_MARKDOWN_MARKS = {"best": "**{}**", "second": "<ins>{}</ins>", "": "{}"}
_TERMINAL_MARKS = {"best": "bold", "second": "underline", "": ""}
_LATEX_MARKS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
_LATEX_PREAMBLE = r"""\documentclass[11pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[margin=2.2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\begin{document}
"""
_LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "σ": r"$\sigma$",
    "κ": r"$\kappa$",
    "²": r"$^2$",
    "…": r"\ldots{}",
    "’": "'",
}
CsvRow = Mapping[str, Any]


def to_markdown(table: MetricTable) -> str:
    """Return a table in Markdown, one row per method."""
    heads = ["method", *(escape_markdown(column.text) for column in table.columns)]
    heads += ["rank"] if table.ranks else []
    lines = table.format_rows(
        escape_markdown, lambda cell, mark: _MARKDOWN_MARKS[mark].format(format_summary(cell))
    )
    rows = ["| " + " | ".join(line) + " |" for line in (heads, *lines)]
    rows.insert(1, "|:--|" + "--:|" * (len(heads) - 1))
    return "\n".join(rows) + "\n"


def escape_markdown(text: str) -> str:
    r"""Escape a text for a cell or a line of Markdown, which may contain HTML.

    >>> escape_markdown("a|b <i>")
    'a\\|b &lt;i&gt;'
    """
    line = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\|*`\[\]])", r"\\\1", line)


def terminal_table(records: Iterable[RunRecord]) -> "Table":
    """Return the table of the final average accuracy for a rich console."""
    return to_terminal(build_table(lay_out(with_other_classifiers(records))))


def to_terminal(table: MetricTable, has_notes: bool = True) -> "Table":
    """Return a table for a rich console; its notes can be left out, to print them once for all."""
    from rich.table import Table
    from rich.text import Text

    caption = "\n".join([f"{table.remark}.", *(terminal_notes([table]) if has_notes else [])])
    rich_table = Table(title=Text(table.title), caption=Text(caption))
    rich_table.add_column("method", no_wrap=True)
    for column in table.columns:
        rich_table.add_column(Text("\n".join(column.parts)), justify="right", no_wrap=True)
    if table.ranks:
        rich_table.add_column("rank", justify="right")
    rows = table.format_rows(
        Text, lambda cell, mark: Text(format_summary(cell), style=_TERMINAL_MARKS[mark])
    )
    for row in rows:
        rich_table.add_row(*row)
    return rich_table


def terminal_notes(tables: Sequence[MetricTable]) -> list[str]:
    """Return the meaning of marks, or why there are none, each once."""
    has_marks = any(ranking.best for table in tables for ranking in table.rankings)
    return [
        *([SHORT_RULE] if has_marks else []),
        *(note for note in collect_footnotes(tables) if NO_MARKS.lower() in note.lower()),
    ]


def latex_document(tables: Sequence[MetricTable], remarks: Sequence[str]) -> str:
    """Return a LaTeX document with `remarks` and all tables; long tables are split."""
    parts = [_LATEX_PREAMBLE, *(f"\\noindent {escape_latex(remark)}\n" for remark in remarks)]
    for table in tables:
        starts = range(0, len(table.rows), MAX_LATEX_ROWS)
        parts += [to_latex(table, start) for start in starts]
    return "\n".join([*parts, "\\end{document}\n"])


def to_latex(table: MetricTable, start: int = 0) -> str:
    """Return the rows of a table from `start` on that fit on a page, with its footnotes."""
    stop = min(start + MAX_LATEX_ROWS, len(table.rows))
    part = "" if len(table.rows) <= MAX_LATEX_ROWS else f", rows {start + 1} to {stop}"
    heads = ["method", *map(_latex_head, table.columns), *(["rank"] if table.ranks else [])]
    rows = list(table.format_rows(escape_latex, _latex_cell))[start:stop]
    is_wide = len(table.columns) > MAX_LATEX_COLUMNS
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        f"\\caption{{{escape_latex(f'{table.title}{part}: {table.remark}.')}}}",
        f"\\label{{tab:{table.metric.replace('_', '-')}{f'-{start}' if start else ''}}}",
        r"\resizebox{\textwidth}{!}{%" if is_wide else r"\small",
        f"\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        _latex_row(heads),
        r"\midrule",
        *map(_latex_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(["}"] if is_wide else []),
        *(
            f"\\par\\smallskip\\parbox{{0.95\\textwidth}}{{\\footnotesize {escape_latex(note)}}}"
            for note in table.footnotes
        ),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    # LaTeX reads a bracket after \\ as an argument; {} prevents that.
    return " & ".join(f"{{}}{cell}" if cell.startswith("[") else cell for cell in cells) + r" \\"


def _latex_head(label: Label) -> str:
    return r"\shortstack[r]{" + r"\\".join(escape_latex(part) for part in label.parts) + "}"


def _latex_cell(summary: Summary | None, mark: str) -> str:
    if summary is None:
        return "--"
    mean = _LATEX_MARKS[mark] % percent(summary.mean)
    return mean if summary.std is None else f"{mean} {{\\scriptsize $\\pm$ {percent(summary.std)}}}"


def escape_latex(text: str) -> str:
    r"""Escape a text for pdflatex; letters without a glyph lose their accents or become "?".

    >>> escape_latex("er_ace 50% é 漢")
    'er\\_ace 50\\% é ?'
    """
    return "".join(_LATEX_CHARACTERS.get(c) or _latex_letter(c) for c in " ".join(text.split()))


def _latex_letter(character: str) -> str:
    if " " <= character <= "~" or "À" <= character <= "ÿ":
        return character
    ascii_text = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return ascii_text if ascii_text.isalnum() else "?"


def runs_csv(records: Sequence[RunRecord]) -> str:
    """Return one row per run: id, metrics, costs, settings, execution, provenance."""
    return to_csv(
        [
            {
                "id": record.id,
                **{name: getattr(record, name) for name in (*METRICS, *_COSTS)},
                "samples": record.stream.samples,
                "steps": record.stream.steps,
                **flatten(record.config),
                **flatten(record.execution, "execution."),
                **flatten(record.provenance, "provenance."),
            }
            for record in records
        ]
    )


def cells_csv(tables: Iterable[MetricTable]) -> str:
    """Return one row per cell: mean, standard deviation, 95 % interval, mark and test."""
    return to_csv([row for table in tables for row in _cell_rows(table)])


def _cell_rows(table: MetricTable) -> Iterator[CsvRow]:
    # The first test of a method is with the best mean, a second one with the second-best.
    tests = {(test.row, column): test for column, test in reversed(table.tests())}
    for row, (label, cells) in enumerate(table.rows):
        for column, summary in enumerate(cells):
            if summary is None:
                continue
            margin, test = summary.margin, tests.get((row, column))
            yield {
                "metric": table.metric,
                "method": label.text,
                "setting": table.columns[column].text,
                "n": summary.n,
                "mean": summary.mean,
                "std": summary.std,
                "low": None if margin is None else summary.mean - margin,
                "high": None if margin is None else summary.mean + margin,
                "mark": table.mark(row, column),
                # The difference is the best mean minus this one.
                "compared_with": test and table.rows[test.best_row][0].text,
                "common_seeds": test and test.difference.n,
                "difference": test and test.difference.mean,
                "p": test and test.p,
                "p_corrected": test and test.corrected,
                "rank": table.ranks[row] if table.ranks else None,
            }


def to_csv(rows: Sequence[CsvRow]) -> str:
    """Return rows as CSV; a row may lack columns of other rows."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_escape_formula, names))
    for row in rows:
        writer.writerow(_escape_formula(row.get(name, "")) for name in names)
    return text.getvalue()


def _escape_formula(value: Any) -> Any:
    """Put an apostrophe before a text that spreadsheets would run as a formula."""
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    if not isinstance(value, str) or re.fullmatch(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", value):
        return value
    value = "\n".join(value.split("\r"))  # csv does not quote \r, which begins a new row
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\n")) else value
