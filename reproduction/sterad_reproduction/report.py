"""Verdicts as text: for the terminal, a Markdown page and the HTML report."""

from collections import Counter
from collections.abc import Iterable, Sequence

from sterad.report.figures import sweep
from sterad.report.page import PaperSection
from sterad.report.section import Section
from sterad.results.record import RunRecord
from sterad_reproduction.control import MIN_POINTS, MIN_STANDARD_ERRORS
from sterad_reproduction.numbers import load_numbers
from sterad_reproduction.verdicts import MAX_STANDARD_ERRORS, OtherProtocol, Verdict, judge

RULE = (
    f"A number holds if our mean and the paper's are at most {MAX_STANDARD_ERRORS:g} standard "
    "errors apart (standard error of the difference of two means, pooled variance). A claim holds "
    "if all of the paper's comparisons were run and support it, and does not hold if one "
    "contradicts it; its standard errors are those of the weakest comparison. Runs under another "
    "protocol are never compared with a number; a claim that is judged on them names the protocol. "
    "No claim is judged unless the best method under the same protocol is clearly above the "
    f"control that learns no representation: by {MIN_POINTS:g} points and "
    f"{MIN_STANDARD_ERRORS:g} standard errors."
)
BEGIN, END = "<!-- sterad verify: begin -->", "<!-- sterad verify: end -->"
"""`sterad verify --markdown` replaces the text between these marks."""
_FIGURES = (
    ("features around fixed directions", "sphere", "a run of agd-fd or vmf-fd"),
    ("classes along the stream", "stream", "a stream whose tasks share no classes"),
    ("accuracy over the concentration", "sweep", "runs with three or more variances"),
    ("time per method", "seconds", "any run"),
    ("loss of new over old classes", "loss", "a longer run of agd-fd, vmf-fd, scr or er"),
)
"""The paper's figures in order: content, key of the report's section, runs that it needs."""


def count_outcomes(verdicts: Iterable[Verdict]) -> str:
    """Return the numbers of outcomes in one line.

    >>> count_outcomes([])
    'numbers: 0 hold, 0 do not hold, 0 not run; claims: 0 hold, 0 do not hold, 0 not run'
    """
    verdicts = list(verdicts)
    counts = Counter((v.kind, v.outcome, v.kind == "claim" and bool(v.protocol)) for v in verdicts)
    parts = []
    for kind in ("number", "claim", "reference"):
        if kind == "reference" and not any(v.kind == kind for v in verdicts):
            continue
        holds, fails, missing = (
            counts[kind, outcome, False] for outcome in ("holds", "does not hold", "not run")
        )
        parts.append(f"{kind}s: {holds} hold, {fails} do not hold, {missing} not run")
    holds, fails = (counts["claim", outcome, True] for outcome in ("holds", "does not hold"))
    if holds or fails:
        parts.append(f"claims under another protocol: {holds} hold, {fails} do not hold")
    if refused := sum(v.outcome == "no claim" for v in verdicts):
        parts.append(f"not judged, too close to the control: {refused}")
    return "; ".join(parts)


def describe_outcome(verdict: Verdict) -> str:
    """Return the outcome with its standard errors, and whether it is within noise."""
    if verdict.kind == "reference" and verdict.ours and verdict.standard_errors is None:
        return "not judged: one run, and no spread is printed"
    if verdict.outcome == "not run":
        return "not run in full" if verdict.ours else "not run"
    if verdict.outcome == "no claim":
        return f"not judged: {verdict.obstacle}"
    if verdict.standard_errors is None:
        return f"{verdict.outcome}, in single runs"
    size = f"{abs(verdict.standard_errors):.1f} standard errors"
    if verdict.kind != "claim":
        side = "above" if verdict.standard_errors > 0 else "below"
        return f"{verdict.outcome}: {size} {side} the paper"
    is_noise = abs(verdict.standard_errors) < MAX_STANDARD_ERRORS
    return f"{verdict.outcome}, by {size}{', within noise' if is_noise else ''}"


def describe_protocol(verdict: Verdict) -> str:
    """Return the protocol of a verdict; one that is not the paper's is marked as another."""
    return f"another protocol: {verdict.protocol}" if verdict.protocol else "the paper's protocol"


def paper_section(records: Sequence[RunRecord], sections: Sequence[Section]) -> PaperSection:
    """Return the section of the HTML report that `sterad report --paper` adds."""
    verdicts = judge(records)
    return PaperSection(
        summary=count_outcomes(verdicts),
        rule=RULE,
        rows=tuple(
            (v.source, v.subject, describe_outcome(v), v.paper, v.ours, describe_protocol(v))
            for v in verdicts
            if v.outcome != "not run"
        ),
        figures=_find_figures(sections),
    )


def _find_figures(sections: Sequence[Section]) -> tuple[tuple[str, str, bool, str], ...]:
    drawn = {section.key for section in sections if section.figures}
    sweeps = [
        figure for section in sections if section.key == "sweep" for figure in section.figures
    ]
    if not any(figure.name.startswith(sweep.CONCENTRATION) for figure in sweeps):
        drawn.discard("sweep")
    return tuple((what, key, key in drawn, needs) for what, key, needs in _FIGURES)


def replace_marked(text: str, part: str) -> str | None:
    """Return `text` with `part` between the marks; None if a text that is not empty has none."""
    marked = f"{BEGIN}\n\n{part}\n{END}\n"
    if not text.strip():
        return marked
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + marked + after.lstrip("\n") if begin and end else None


def to_markdown(verdicts: Sequence[Verdict], others: Sequence[OtherProtocol], out: str) -> str:
    """Return all verdicts in Markdown: claims, numbers table by table, other protocols."""
    parts = [f"## Paper and runs\n\n`sterad verify {out}`: {count_outcomes(verdicts)}.\n\n{RULE}"]
    claims = [verdict for verdict in verdicts if verdict.kind == "claim"]
    rows = [
        (c.source, c.subject, describe_outcome(c), c.ours, describe_protocol(c)) for c in claims
    ]
    parts.append(
        "### Claims\n\n" + markdown_table(("source", "claim", "verdict", "ours", "protocol"), rows)
    )
    parts.append(_missing_commands(claims))
    for table in dict.fromkeys(number.table for number in load_numbers()):
        name = f"table {table.number}"
        numbers = [v for v in verdicts if v.kind == "number" and v.source.partition(",")[0] == name]
        parts.append(f"### Table {table.number}: {table.title}\n\n" + _numbers_table(numbers))
        parts.append(_missing_commands(numbers))
    parts.append("### Other protocols\n\n" + _others_table(others))
    return "\n\n".join(part for part in parts if part) + "\n"


def _numbers_table(numbers: Sequence[Verdict]) -> str:
    rows = [(n.subject, n.paper, n.ours, describe_outcome(n)) for n in numbers if n.ours]
    if not rows:
        return "None of its numbers was run under the paper's protocol."
    return markdown_table(("number", "paper", "ours", "verdict"), rows)


def _missing_commands(verdicts: Sequence[Verdict]) -> str:
    missing = [verdict for verdict in verdicts if verdict.outcome == "not run"]
    if not missing:
        return ""
    title = f"<details><summary>Not run: {len(missing)}, with commands</summary>"
    commands = shell_commands((one.command, f"{one.subject} {one.paper}") for one in missing)
    return "\n\n".join((title, commands, "</details>"))


def shell_commands(commands: Iterable[tuple[str, str]]) -> str:
    """Return a block of shell commands, each once, below comments that say what they run.

    >>> print(shell_commands([("train er", "ER"), ("train er", "ER, again")]))
    ```sh
    # ER
    # ER, again
    train er
    ```
    """
    comments: dict[str, list[str]] = {}
    for command, comment in commands:
        comments.setdefault(command, []).append(f"# {comment}")
    lines = ["\n".join((*above, command)) for command, above in comments.items()]
    return "```sh\n" + "\n".join(lines) + "\n```"


def _others_table(others: Sequence[OtherProtocol]) -> str:
    if not others:
        return "None."
    rows = [
        (o.setting, ", ".join(o.methods), str(o.runs), ", ".join(o.differences) or "nothing")
        for o in others
    ]
    return markdown_table(
        ("dataset, stream", "methods", "runs", "differences from the paper"), rows
    )


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
