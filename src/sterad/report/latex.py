"""Tables in LaTeX with booktabs: a document that compiles, and tables to take out of it."""

import unicodedata
from collections.abc import Sequence

from sterad.report.tables import MetricTable, percent, write_rank
from sterad.results.grouping import Label
from sterad.results.statistics import Summary

MOST_ROWS = 40
"""Rows of a table that fit a page."""
MOST_COLUMNS = 4
"""Columns that fit the width of the text; a wider table is scaled down to it."""
_PREAMBLE = r"""\documentclass[11pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[margin=2.2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\begin{document}
"""
_SIGNS = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
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
_MARKS = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}


def escape(text: str) -> str:
    r"""Write any text so that pdflatex sets it; letters it has no type for lose their accents.

    >>> escape("er_ace 50% é 漢")
    'er\\_ace 50\\% é ?'
    """
    return "".join(_SIGNS.get(sign) or _letter(sign) for sign in " ".join(text.split()))


def _letter(sign: str) -> str:
    if " " <= sign <= "~" or "À" <= sign <= "ÿ":
        return sign
    plain = unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()
    return plain if plain.isalnum() else "?"


def document(tables: Sequence[MetricTable], remarks: Sequence[str]) -> str:
    """Return all tables in one document, `remarks` in front."""
    parts = [_PREAMBLE, *(f"\\noindent {escape(remark)}\n" for remark in remarks)]
    for table in tables:
        starts = range(0, len(table.rows), MOST_ROWS)
        parts += [latex(table, start) for start in starts]
    return "\n".join([*parts, "\\end{document}\n"])


def latex(table: MetricTable, start: int = 0) -> str:
    """Return the rows of one table from `start` on, as many as fit a page, with its footnotes."""
    stop = min(start + MOST_ROWS, len(table.rows))
    part = "" if len(table.rows) <= MOST_ROWS else f", rows {start + 1} to {stop}"
    wide = len(table.columns) > MOST_COLUMNS
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        f"\\caption{{{escape(f'{table.title}{part}: {table.remark}.')}}}",
        f"\\label{{tab:{table.metric.replace('_', '-')}{f'-{start}' if start else ''}}}",
        *([r"\resizebox{\textwidth}{!}{%"] if wide else [r"\small"]),
        *_tabular(table, range(start, stop)),
        *(["}"] if wide else []),
        *(
            f"\\par\\smallskip\\parbox{{0.95\\textwidth}}{{\\footnotesize {escape(note)}}}"
            for note in table.footnotes
        ),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _tabular(table: MetricTable, rows: range) -> list[str]:
    heads = ["method", *map(_stacked, table.columns), *(["rank"] if table.ranks else [])]
    lines = [f"\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule", _line(heads)]
    lines.append(r"\midrule")
    for row in rows:
        label, cells = table.rows[row]
        written = [_cell(cell, table.mark(row, column)) for column, cell in enumerate(cells)]
        place = [escape(write_rank(table.ranks[row]))] if table.ranks else []
        lines.append(_line([escape(label.text), *written, *place]))
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _line(cells: Sequence[str]) -> str:
    # A bracket after \\ would be read as its argument: {} stands between them.
    return " & ".join(f"{{}}{cell}" if cell.startswith("[") else cell for cell in cells) + r" \\"


def _stacked(label: Label) -> str:
    return r"\shortstack[r]{" + r"\\".join(escape(part) for part in label.parts) + "}"


def _cell(summary: Summary | None, mark: str) -> str:
    if summary is None:
        return "--"
    mean = _MARKS[mark] % percent(summary.mean)
    return mean if summary.std is None else f"{mean} {{\\scriptsize $\\pm$ {percent(summary.std)}}}"
