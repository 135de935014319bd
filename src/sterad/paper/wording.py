"""Verdicts in words, for a terminal and for the page of the reproduction."""

from collections import Counter
from collections.abc import Iterable, Sequence

from sterad.paper.numbers import numbers
from sterad.paper.others import OtherProtocol
from sterad.paper.verdicts import APART, Verdict

RULE = (
    f"A number holds if our mean and the paper's are at most {APART:g} standard errors apart; the "
    "standard error of the difference is that of two means with pooled spread. A claim holds if "
    "all of the paper's comparisons were run and are in its favour, and does not if one is against "
    "it; the standard errors are those of the weakest. Runs under another protocol are never held "
    "against a number; a claim that is judged on them says so, and on what was run there."
)

BEGIN, END = "<!-- sterad verify: begin -->", "<!-- sterad verify: end -->"
"""What stands between them is written by `sterad verify --markdown`, the rest by hand."""


def summary(found: Iterable[Verdict]) -> str:
    """Count the outcomes in one line.

    >>> summary([])
    'numbers: 0 hold, 0 do not hold, 0 not run; claims: 0 hold, 0 do not hold, 0 not run'
    """
    counts = Counter((one.kind, one.outcome, bool(one.protocol)) for one in found)
    told = []
    for kind in ("number", "claim"):
        holds, fails, absent = (
            counts[kind, outcome, False] for outcome in ("holds", "does not hold", "not run")
        )
        told.append(f"{kind}s: {holds} hold, {fails} do not hold, {absent} not run")
    held, failed = (counts["claim", outcome, True] for outcome in ("holds", "does not hold"))
    if held or failed:
        told.append(f"claims under another protocol: {held} hold, {failed} do not hold")
    return "; ".join(told)


def by_how_much(verdict: Verdict) -> str:
    """Say an outcome with its standard errors, and where noise alone may have decided it."""
    if verdict.outcome == "not run":
        return "not run in full" if verdict.ours else "not run"
    if verdict.errors is None:
        return f"{verdict.outcome}, in single runs"
    size = f"{abs(verdict.errors):.1f} standard errors"
    if verdict.kind == "number":
        return f"{verdict.outcome}: {size} {'above' if verdict.errors > 0 else 'below'} the paper"
    noise = ", noise may decide" if abs(verdict.errors) < APART else ""
    return f"{verdict.outcome}, by {size}{noise}"


def protocol_of(verdict: Verdict) -> str:
    """Say under which protocol a verdict was reached.

    Another one is always named as such.
    """
    return f"another protocol: {verdict.protocol}" if verdict.protocol else "the paper's protocol"


def within(text: str, part: str) -> str | None:
    """Return `text` with `part` in the place of what stands between the marks; None without marks.

    An empty text is all place.
    """
    whole = f"{BEGIN}\n\n{part}\n{END}\n"
    if not text.strip():
        return whole
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + whole + after.lstrip("\n") if begin and end else None


def section(found: Sequence[Verdict], others: Sequence[OtherProtocol], out: str) -> str:
    """Return the reproduction in Markdown: claims, numbers table by table, other protocols."""
    parts = [f"## The paper beside our runs\n\n`sterad verify {out}`: {summary(found)}.\n\n{RULE}"]
    claims = [one for one in found if one.kind == "claim"]
    rows = [(c.where, c.subject, by_how_much(c), c.ours, protocol_of(c)) for c in claims]
    parts.append("### Claims\n\n" + _table(("from", "claim", "verdict", "ours", "protocol"), rows))
    parts.append(_commands([c for c in claims if c.outcome == "not run"]))
    for table in dict.fromkeys(number.table for number in numbers()):
        mine = [one for one in found if one.where.partition(",")[0] == f"table {table.number}"]
        mine = [one for one in mine if one.kind == "number"]
        parts.append(f"### Table {table.number}: {table.title}\n\n" + _numbers(mine))
        parts.append(_commands([one for one in mine if one.outcome == "not run"]))
    parts.append("### Other protocols\n\n" + _others(others))
    return "\n\n".join(part for part in parts if part) + "\n"


def _numbers(found: Sequence[Verdict]) -> str:
    rows = [(n.subject, n.paper, n.ours, by_how_much(n)) for n in found if n.ours]
    if not rows:
        return "None of its numbers was run under the paper's protocol."
    return _table(("number", "paper", "ours", "verdict"), rows)


def _commands(absent: Sequence[Verdict]) -> str:
    if not absent:
        return ""
    asked: dict[str, list[str]] = {}
    for one in absent:
        asked.setdefault(one.command, []).append(f"# {one.subject} {one.paper}")
    lines = ["\n".join((*subjects, command)) for command, subjects in asked.items()]
    title = f"<details><summary>Not run: {len(absent)}, and what would run them</summary>"
    return "\n\n".join((title, "```sh\n" + "\n".join(lines) + "\n```", "</details>"))


def _others(others: Sequence[OtherProtocol]) -> str:
    if not others:
        return "None."
    rows = [
        (o.where, ", ".join(o.methods), str(o.runs), ", ".join(o.differs) or "nothing")
        for o in others
    ]
    return _table(("dataset, stream", "methods", "runs", "what differs from the paper"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
