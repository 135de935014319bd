"""`sterad runs`: list, filter, compare and delete runs."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from sterad.cli.options import parse_options, positional
from sterad.cli.terminal import make_console, print_table, widen_for_file
from sterad.errors import SteradError, suggest_name
from sterad.files import write_atomically
from sterad.report.sparkline import curve_line
from sterad.report.tables import DASH, percent
from sterad.report.text import format_age
from sterad.results.deletion import check_deletable, delete_run
from sterad.results.stored_run import (
    StoredRun,
    age_of,
    check_field,
    matches,
    read_runs,
    resolve_run,
)

LINE_WIDTH = 8
"""Characters of the accuracy curve in the list."""
Sort = Literal["id", "method", "dataset", "stream", "seed", "accuracy", "state", "age", "seconds"]


@dataclass(frozen=True)
class ListRuns:
    """List the runs in FOLDER: finished, running, unfinished and damaged ones.

    `sterad runs compare A B` compares two runs, `sterad runs delete RUN ...` deletes runs,
    `sterad show RUN` prints one.
    """

    folder: Path = positional("FOLDER", Path("runs"))
    """Folder of runs, one directory each, or of studies that contain runs."""
    method: str | None = None
    """Only runs of this method."""
    dataset: str | None = None
    """Only runs on this dataset."""
    stream: str | None = None
    """Only runs on this stream."""
    state: Literal["finished", "running", "unfinished", "damaged"] | None = None
    """Only runs in this state."""
    where: tuple[str, ...] = ()
    """Only runs with this setting, as FIELD=VALUE, for example memory=200 (repeatable)."""
    sort: Sort = "id"
    """Order of the runs: accuracy from high to low, all others from low to high."""

    def run(self) -> int:
        """Print the table, and a sentence for each damaged run."""
        runs = read_runs(self.folder)
        if not runs:
            raise SteradError(
                f"{str(self.folder)!r} has no runs: `sterad train agd-fd --out {self.folder}` "
                "creates one"
            )
        found = sorted(self.select(runs), key=_SORT_KEYS[self.sort])
        for run in found:
            if run.problem:
                print(f"sterad: {run.problem}", file=sys.stderr)
        if not found:
            print(f"none of the {len(runs)} runs in {self.folder} is selected", file=sys.stderr)
            return 0
        print_list(found)
        print(f"{len(found)} of {len(runs)} runs in {self.folder}", file=sys.stderr)
        return 0

    def select(self, runs: Sequence[StoredRun]) -> list[StoredRun]:
        """Return the runs that all filters accept."""
        conditions = [_parse_condition(text) for text in self.where]
        for field, _ in conditions:
            check_field(field, runs)
        names = (("method", self.method), ("dataset", self.dataset), ("stream", self.stream))
        conditions += [(f"{kind}.name", name) for kind, name in names if name is not None]
        return [
            run
            for run in runs
            if self.state in (None, run.state)
            and all(matches(run, field, value) for field, value in conditions)
        ]


def _parse_condition(text: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not field or not equals:
        raise SteradError(f"--where {text!r} has no value: give FIELD=VALUE, such as memory=200")
    return field.strip().replace("-", "_"), value.strip()


def _seed_key(run: StoredRun) -> tuple[float, str]:
    seed = run.settings.get("seed")
    return (seed if isinstance(seed, int | float) else float("inf"), run.id)


_SORT_KEYS: dict[str, Callable[[StoredRun], Any]] = {
    "id": lambda run: run.id,
    "method": lambda run: (run.value("method.name"), run.id),
    "dataset": lambda run: (run.value("dataset.name"), run.id),
    "stream": lambda run: (run.value("stream.name"), run.id),
    "seed": _seed_key,
    "accuracy": lambda run: (-1.0 if run.accuracy is None else -run.accuracy, run.id),
    "state": lambda run: (run.state, run.id),
    "age": lambda run: (-run.changed, run.id),
    "seconds": lambda run: (run.seconds, run.id),
}


def print_list(runs: Sequence[StoredRun]) -> None:
    """Print runs as a table; a file gets whole ids, a terminal the hashes at their ends."""
    console = make_console()
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name, kind in _COLUMNS.items():
        is_number = kind == "number"
        table.add_column(name, no_wrap=True, justify="right" if is_number else "left")
    for run in runs:
        name = run.id.rpartition("-")[2] if console.is_terminal else run.id
        table.add_row(*map(Text, (name, *_cells(run))))
    widen_for_file(console, table)
    print_table(console, table)


_COLUMNS = {
    **dict.fromkeys(("run", "method", "dataset", "stream"), "text"),
    **dict.fromkeys(("seed", "acc. %"), "number"),
    **dict.fromkeys(("curve", "state"), "text"),
    **dict.fromkeys(("age", "seconds"), "number"),
}


def _cells(run: StoredRun) -> list[str]:
    """Return the texts of all columns but the first."""
    state: str = run.state
    if run.record is None and run.steps:
        state += f" {run.step / run.steps:.0%}"
    return [
        *(run.value(f"{kind}.name") or DASH for kind in ("method", "dataset", "stream")),
        run.value("seed") or DASH,
        percent(run.accuracy),
        curve_line(run.curve, LINE_WIDTH, run.samples) if run.curve else "",
        state,
        format_age(age_of(run)),
        f"{run.seconds:.0f}",
    ]


@dataclass(frozen=True)
class CompareRuns:
    """Compare two runs: what differs in their settings, their metrics, tasks, cost and curves.

    A and B are run directories, record files, ids or unique beginnings of ids.
    """

    first: str = positional("A")
    """The first run."""
    second: str = positional("B")
    """The second run; differences are B minus A."""
    out: Path = Path("runs")
    """Folder of runs in which ids are looked up."""
    html: Path | None = None
    """Also write the comparison, with both curves in one figure, to this .html file."""

    def run(self) -> int:
        """Print the comparison and write the page."""
        from sterad.cli.comparison import print_comparison
        from sterad.report.comparison import compare_runs, render_comparison

        if self.html is not None and self.html.suffix != ".html":
            raise SteradError(f"cannot write {str(self.html)!r}: its name must end in .html")
        first, second = (resolve_run(name, self.out) for name in (self.first, self.second))
        comparison = compare_runs(first, second)
        page = None if self.html is None else render_comparison(comparison)
        print_comparison(comparison, make_console())
        if self.html is not None and page is not None:
            write_atomically(self.html, page)
            print(self.html)
        return 0


@dataclass(frozen=True)
class DeleteRuns:
    """Delete runs with their records and checkpoints, after confirmation.

    Only run directories without other files are deleted, and no run that a process is writing.
    """

    ids: tuple[str, ...] = positional("RUN ...")
    """Ids, unique beginnings of ids, or run directories."""
    out: Path = Path("runs")
    """Folder of runs in which ids are looked up."""
    yes: bool = False
    """Delete without confirmation."""

    def run(self) -> int:
        """Delete the runs; check all of them before the first is deleted."""
        runs = {run.path.absolute(): run for run in (resolve_run(i, self.out) for i in self.ids)}
        for run in runs.values():
            check_deletable(run)
        if not self.yes and not _confirm(list(runs.values())):
            print("nothing was deleted", file=sys.stderr)
            return 1
        for run in runs.values():
            size = delete_run(run)
            print(f"deleted {run.path} ({run.state}, {size / 2**20:.1f} MiB)")
        return 0


def _confirm(runs: Sequence[StoredRun]) -> bool:
    for run in runs:
        print(f"{run.path} ({run.state}, accuracy {percent(run.accuracy)} %)")
    count = "this run" if len(runs) == 1 else f"these {len(runs)} runs"
    print(f"Delete {count}? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


COMMANDS: dict[str, type[Any]] = {"compare": CompareRuns, "delete": DeleteRuns}


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    if argv and argv[0] in COMMANDS:
        command = COMMANDS[argv[0]]
        return int(parse_options(command, argv[1:], f"sterad runs {argv[0]}").run())
    name = argv[0] if argv else "-"
    is_folder = name.startswith("-") or Path(name).exists()
    if not is_folder and (near := suggest_name(name, COMMANDS).strip()):
        raise SteradError(f"{name!r} is no folder and no command of `sterad runs`: {near}")
    return int(parse_options(ListRuns, argv, "sterad runs").run())
