"""`sterad verify`: every number and claim of the paper beside our runs."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sterad.atomic import write_atomically
from sterad.cli.options import parse_options, positional
from sterad.errors import SteradError
from sterad.paper.commands import study_command
from sterad.paper.numbers import numbers
from sterad.paper.others import OtherProtocol, other_protocols
from sterad.paper.verdicts import Verdict, verdicts
from sterad.paper.wording import BEGIN, END, by_how_much, protocol_of, section, summary, within
from sterad.results.reading import left_out_in_words, read_records


@dataclass(frozen=True)
class VerifyOptions:
    """Say which numbers and claims of the paper hold in the finished runs under RUNS."""

    runs: Path = positional("RUNS", Path("runs"))
    """Folder of runs, one directory each, or of studies that have these."""
    markdown: Path | None = None
    """A file for everything, also what was not run and the commands that would run it; in a file
    that is there, what stands between the marks of an earlier call is replaced."""


def verify(runs: Path, markdown: Path | None) -> None:
    """Print the verdicts, and write them where asked to."""
    records, left_out = read_records(runs)
    for sentence in left_out_in_words(records, left_out):
        print(sentence, file=sys.stderr)
    found, others = verdicts(records, str(runs)), other_protocols(records)
    shown = [one for one in found if one.ours and (one.kind, one.outcome) != ("number", "holds")]
    if shown:
        Console().print(_table(shown))
    print(summary(found))
    _print_absent(found, others, str(runs))
    if markdown is not None:
        _write(markdown, section(found, others, str(runs)))


def _table(shown: Sequence[Verdict]) -> Table:
    table = Table("from", "the paper says", "our runs say", "verdict", show_lines=True)
    table.columns[0].no_wrap = True
    for one in shown:
        style = {"holds": "green", "does not hold": "red"}.get(one.outcome, "dim")
        says = one.subject if one.kind == "claim" else f"{one.subject}: {one.paper}"
        verdict = f"[{style}]{by_how_much(one)}[/]\n{protocol_of(one)}"
        table.add_row(one.where, says, one.ours, verdict)
    return table


def _print_absent(found: Sequence[Verdict], others: Sequence[OtherProtocol], out: str) -> None:
    studies = {f"table {number.table.number}": number.table.study for number in numbers()}
    absent: dict[tuple[str, str], Counter[str]] = {}
    for one in found:
        if one.outcome == "not run":
            where = one.where.partition(",")[0]
            command = study_command(studies[where], out) if where in studies else one.command
            absent.setdefault((where, command), Counter())[one.kind] += 1
    for (where, command), counts in absent.items():
        told = " and ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items())
        print(f"{where}, {told} not run: {command}")
    for other in others:
        print(f"another protocol, {other.runs} runs on {other.where}: {', '.join(other.differs)}")


def _write(file: Path, part: str) -> None:
    try:
        text = within(file.read_text(encoding="utf-8") if file.exists() else "", part)
    except (OSError, UnicodeDecodeError) as error:
        raise SteradError(f"cannot read {str(file)!r}: {error}") from error
    if text is None:
        raise SteradError(
            f"{str(file)!r} has no place for the verdicts and is left as it is: put the lines "
            f"{BEGIN!r} and {END!r} into it, or name a new file"
        )
    write_atomically(file, text)
    print(file)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: VerifyOptions = parse_options(VerifyOptions, argv, "sterad verify")
    verify(options.runs, options.markdown)
    return 0
