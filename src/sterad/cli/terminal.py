"""Print tables to a terminal or a file."""

import os
import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

MAX_FILE_WIDTH = 10_000
"""Characters in a line of a file, which has no width of its own."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that would give orders to the terminal, other than tabs and ends of lines."""
Rows = Iterable[tuple[str | Text, ...]]


class SafeConsole(Console):
    """A console on which names from files cannot give orders to the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text with a question mark for each control character."""
        return super().render_str(CONTROL.sub("?", text), **options)


def make_console() -> Console:
    """Return a console; it has no colors and styles if NO_COLOR is set or the output is a file."""
    plain = bool(os.environ.get("NO_COLOR"))
    return SafeConsole(color_system=None if plain else "auto", highlight=False, markup=False)


def make_table(*heads: str) -> Table:
    """Return a table without lines, whose long texts continue on the next line."""
    table = Table(*heads, box=None, pad_edge=False, padding=(0, 1), show_header=bool(heads))
    for column in table.columns:
        column.overflow = "fold"
    return table


def print_rows(console: Console, title: str, rows: Rows) -> None:
    """Print rows under a title as columns, the first one dim; nothing without rows."""
    table = make_table()
    table.add_column(style="dim", no_wrap=True)
    for row in rows:
        table.add_row(f"  {row[0]}", *row[1:])
    for column in table.columns[1:]:
        column.overflow = "fold"
    print_table(console, table, title)


def print_table(console: Console, table: Table, title: str = "") -> None:
    """Print a table under a title, without spaces at the ends of lines; nothing without rows."""
    if not table.row_count:
        return
    if title:
        console.print(Text(f"\n{title}", style="bold"))
    with console.capture() as capture:
        console.print(table)
    console.file.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def widen_for_file(console: Console, table: Table) -> None:
    """Give the console the width that a table needs, if the output is a file."""
    if not console.is_terminal:
        options = console.options.update(max_width=MAX_FILE_WIDTH)
        console.width = max(80, console.measure(table, options=options).maximum)
