"""`sterad verify`: compare printed numbers and claims with finished runs."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sterad.cli.options import parse_options, positional
from sterad.errors import SteradError
from sterad.files import write_atomically
from sterad.results.run_directory import describe_left_out, read_records
from sterad_reproduction.numbers import load_numbers
from sterad_reproduction.references import judge_references
from sterad_reproduction.report import (
    BEGIN,
    END,
    count_outcomes,
    describe_outcome,
    describe_protocol,
    replace_marked,
    to_markdown,
)
from sterad_reproduction.result_tables import update_tables
from sterad_reproduction.verdicts import (
    OtherProtocol,
    Verdict,
    find_other_protocols,
    judge,
    study_command,
)


@dataclass(frozen=True)
class VerifyOptions:
    """Compare printed numbers, claims and reference cells with the finished runs under RUNS."""

    runs: Path = positional("RUNS", Path("runs"))
    """Folder of runs, one directory each, or of studies that contain runs."""
    markdown: Path | None = None
    """Write all verdicts to this Markdown file, with the commands that run the missing ones; in an
    existing file, the text between the marks of an earlier call is replaced."""
    cells: Path | None = None
    """Write a page of every cell that was run or is printed in a reference table to this Markdown
    file, and the scatter plot of ours against printed beside it, as SVG."""
    tables: Path | None = None
    """Write the tables that this Markdown file marks by `<!-- table: STUDY -->` again, each from
    the records in the folder RUNS/STUDY."""


def verify(
    runs: Path, markdown: Path | None, cells: Path | None = None, tables: Path | None = None
) -> None:
    """Print the verdicts, and write them to Markdown files if they are given."""
    records, left_out = read_records(runs)
    for sentence in describe_left_out(records, left_out):
        print(sentence, file=sys.stderr)
    verdicts, others = judge(records, str(runs)), find_other_protocols(records)
    references = judge_references(records, str(runs))
    shown = [v for v in verdicts if v.ours and (v.kind, v.outcome) != ("number", "holds")]
    shown += [v for v in references if v.ours]
    if shown:
        Console().print(_verdict_table(shown))
    print(count_outcomes((*verdicts, *references)))
    _print_missing(verdicts, others, str(runs))
    if markdown is not None:
        _write_markdown(markdown, to_markdown(verdicts, others, str(runs)))
    if cells is not None:
        from sterad_reproduction.cells import write_page  # it needs matplotlib

        print(write_page(cells, records, runs))
    if tables is not None:
        update_tables(tables, runs)
        print(tables)


def _verdict_table(verdicts: Sequence[Verdict]) -> Table:
    table = Table("source", "paper", "our runs", "verdict", show_lines=True)
    table.columns[0].no_wrap = True
    for v in verdicts:
        style = {"holds": "green", "does not hold": "red"}.get(v.outcome, "dim")
        paper = v.subject if v.kind == "claim" else f"{v.subject}: {v.paper}"
        outcome = f"[{style}]{describe_outcome(v)}[/]\n{describe_protocol(v)}"
        table.add_row(v.source, paper, v.ours, outcome)
    return table


def _print_missing(verdicts: Sequence[Verdict], others: Sequence[OtherProtocol], out: str) -> None:
    studies = {f"table {number.table.number}": number.table.study for number in load_numbers()}
    missing: dict[tuple[str, str], Counter[str]] = {}
    for verdict in verdicts:
        if verdict.outcome == "not run":
            source = verdict.source.partition(",")[0]
            study = studies.get(source)
            command = verdict.command if study is None else study_command(study, out)
            missing.setdefault((source, command), Counter())[verdict.kind] += 1
    for (source, command), counts in missing.items():
        what = " and ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items())
        print(f"{source}, {what} not run: {command}")
    for other in others:
        count = f"{other.runs} run{'s' * (other.runs > 1)}"
        print(f"another protocol, {count} on {other.setting}: {', '.join(other.differences)}")


def _write_markdown(file: Path, part: str) -> None:
    try:
        text = replace_marked(file.read_text(encoding="utf-8") if file.exists() else "", part)
    except (OSError, UnicodeDecodeError) as error:
        raise SteradError(f"cannot read {str(file)!r}: {error}") from error
    if text is None:
        raise SteradError(
            f"{str(file)!r} has no marks for the verdicts and is not changed: put the lines "
            f"{BEGIN!r} and {END!r} into it, or name a new file"
        )
    write_atomically(file, text)
    print(file)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: VerifyOptions = parse_options(VerifyOptions, argv, "sterad verify")
    verify(options.runs, options.markdown, options.cells, options.tables)
    return 0
