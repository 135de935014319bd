"""Verdicts: every number and every claim of the paper beside our runs.

A number holds if our mean and the paper's are at most two standard errors apart. A claim holds if
all of the paper's comparisons were run and are in its favour, and does not if one is against it;
how many standard errors the weakest one has stands with it. The standard error is that of
`points.standard_errors`. Runs under another protocol are never held against a number; a claim may
be judged on those comparisons that were run there, and then says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sterad.paper.claims import (
    Claim,
    Comparison,
    asked,
    claims,
    comparisons,
    method_differences,
    value_of,
)
from sterad.paper.commands import study_command, train_command
from sterad.paper.numbers import Number, numbers
from sterad.paper.points import Point, paper_points, point_of, points_of, standard_errors
from sterad.paper.protocol import around, differences, expected, nearest
from sterad.results.grouping import words
from sterad.results.record import RunRecord

APART = 2.0
"""Standard errors up to which two means of one number are the same."""
Outcome = Literal["holds", "does not hold", "not run"]


@dataclass(frozen=True)
class Verdict:
    """One number or claim of the paper, and what our runs say to it."""

    kind: Literal["number", "claim"]
    where: str
    """The table or figure of the paper."""
    subject: str
    """The settings of a number, the sentence of a claim."""
    paper: str
    ours: str
    """Empty where nothing was run."""
    outcome: Outcome
    errors: float | None
    """A number: standard errors of our mean above the paper's. A claim: those of its weakest
    comparison, below 0 where it speaks against the claim. None where nothing was run, or only
    single runs, which have no spread."""
    protocol: str
    """What differs from the paper's protocol; empty where nothing does."""
    command: str
    """What runs it, or the rest of it."""


def verdicts(records: Iterable[RunRecord], out: str = "runs") -> tuple[Verdict, ...]:
    """Return a verdict a number, in the order of the tables, then one or more a claim.

    out: the folder of runs that the commands name.
    """
    points = points_of(records)
    by_settings = {frozenset(point.settings.items()): point for point in points}
    of_numbers = [
        _of_number(number, by_settings.get(frozenset(expected(number.settings).items())), out)
        for number in numbers()
        if not number.quoted
    ]
    # Accuracies on validation images serve a search; no claim is judged on them.
    tested = [point for point in points if "validation" not in point.settings]
    return (*of_numbers, *(v for claim in claims() for v in _of_claim(claim, tested, out)))


def _of_number(number: Number, found: Point | None, out: str) -> Verdict:
    errors = None if found is None else standard_errors(found, point_of(number))
    outcome: Outcome = "not run"
    if errors is not None:
        outcome = "holds" if abs(errors) <= APART else "does not hold"
    return Verdict(
        kind="number",
        where=f"table {number.table.number}" + ("" if number.printed else ", commented out"),
        subject=number.where,
        paper=point_of(number).text,
        ours="" if found is None else found.text,
        outcome=outcome,
        errors=errors,
        protocol="",
        command=train_command(number, frozenset() if found is None else found.seeds, out),
    )


def _of_claim(claim: Claim, points: Sequence[Point], out: str) -> list[Verdict]:
    groups: dict[str, list[Comparison]] = {"": []}
    for comparison in comparisons(claim, points):
        groups.setdefault(_protocol(claim, comparison), []).append(comparison)
    paper = len(comparisons(claim, paper_points()))
    return [_judged(claim, found, paper, label, out) for label, found in groups.items()]


def _protocol(claim: Claim, comparison: Comparison) -> str:
    """Name the dataset and what differs around the methods; nothing, if nothing at all differs."""
    ours = around(comparison.better.settings, asked(claim.axis))
    apart = [one.text for one in nearest(differences(ours, one) for one in claim.references)]
    dataset = str(ours["dataset.name"])
    if not apart and not _fields(claim, comparison):
        return ""
    return ", ".join(apart if apart and dataset in apart[0] else (dataset, *apart))


def _judged(claim: Claim, found: list[Comparison], paper: int, label: str, out: str) -> Verdict:
    weakest = min(found, key=lambda one: one.strength, default=None)
    outcome: Outcome = "not run"
    if weakest is not None and weakest.against:
        outcome = "does not hold"
    elif found and (label or len(found) >= paper):
        outcome = "holds"
    fields = dict.fromkeys(text for one in found for text in _fields(claim, one))
    return Verdict(
        kind="claim",
        where=claim.where,
        subject=claim.sentence,
        paper=f"{paper} comparison{'s' * (paper > 1)}" if paper else "a figure",
        ours="" if weakest is None else _told(claim, weakest, found),
        outcome=outcome,
        errors=None if weakest is None else weakest.errors,
        protocol=", ".join((*([label] if label else []), *fields)),
        command=" && ".join(study_command(study, out) for study in claim.studies),
    )


def _fields(claim: Claim, comparison: Comparison) -> list[str]:
    """Say which fields of the two methods are not the released ones, but for those in question."""
    open_ones = {claim.axis, *claim.same, *claim.within, "method.memory_batch"}
    return [
        f"{point.settings['method.name']} {one.text}"
        for point in (comparison.better, comparison.worse)
        for one in method_differences(point)
        if one.path not in open_ones
    ]


def _told(claim: Claim, weakest: Comparison, found: Sequence[Comparison]) -> str:
    """Say how many comparisons favour a claim, with whom, and which one does so least."""
    rivals = sorted({str(value_of(one.worse, claim.axis)) for one in found})
    favour = sum(not one.against for one in found)
    named = f" with {', '.join(rivals)}" if claim.axis == "method.name" else ""
    return (
        f"{favour} of {len(found)} comparisons{named} in favour; the weakest: "
        f"{_name(weakest.better, claim.axis)}, {_name(weakest.worse, claim.axis)}"
    )


def _name(point: Point, axis: str) -> str:
    method = str(point.settings["method.name"])
    value = "" if axis == "method.name" else " " + words(axis, value_of(point, axis))
    return f"{method}{value}: {point.text}"
