"""Verdicts on every number and claim of the paper, from the records of runs.

A number holds if our mean and the paper's are at most two standard errors apart. A claim holds if
all of the paper's comparisons were run and support it, and does not hold if one contradicts it; its
standard errors are those of the weakest comparison, as `numbers.standard_errors` defines them. Runs
under another protocol are never compared with a number. A claim may be judged on comparisons under
another protocol, and its verdict then names that protocol. Under any protocol the best method must
be clearly above the control; otherwise no claim is judged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sterad.results.grouping import format_setting
from sterad.results.record import RunRecord
from sterad_reproduction.claims import (
    Claim,
    Comparison,
    axis_paths,
    find_comparisons,
    get_setting,
    load_claims,
    method_differences,
)
from sterad_reproduction.control import find_obstacle
from sterad_reproduction.numbers import (
    Number,
    Result,
    by_settings,
    group_runs,
    load_numbers,
    paper_results,
    standard_errors,
)
from sterad_reproduction.protocol import (
    fewest_differences,
    find_differences,
    find_overrides,
    load_protocol,
    paper_settings,
    without_method,
)

MAX_STANDARD_ERRORS = 2.0
"""Largest distance, in standard errors, at which a number holds."""
MAX_LISTED_DIFFERENCES = 8
Outcome = Literal["holds", "does not hold", "not run", "no claim"]


@dataclass(frozen=True)
class Verdict:
    """One number or claim of the paper or of another source, and the result of our runs."""

    kind: Literal["number", "claim", "reference"]
    source: str
    """The table or figure of the paper, or the other source."""
    subject: str
    """The settings of a number, the sentence of a claim."""
    paper: str
    ours: str
    """Empty if nothing was run."""
    outcome: Outcome
    standard_errors: float | None
    """Number: standard errors of our mean above the paper's. Claim: those of its weakest
    comparison, negative if it contradicts the claim. None without runs or with single runs."""
    protocol: str
    """Differences from the paper's protocol; empty if there are none."""
    command: str
    """The command that runs it, or the missing part of it."""
    obstacle: str = ""
    """Why its comparisons carry no claim; empty if they may."""


def judge(records: Iterable[RunRecord], out: str = "runs") -> tuple[Verdict, ...]:
    """Return one verdict per number, in the order of the tables, then one or more per claim.

    out: the folder of runs in the commands.
    """
    results = group_runs(records)
    found = by_settings(results)
    numbers = [
        judge_number(number, next(iter(find_runs(number, found)), None), out)
        for number in load_numbers()
        if not number.is_quoted
    ]
    # Accuracies on validation images are for hyperparameter searches only.
    tested = [result for result in results if "validation" not in result.settings]
    return (*numbers, *(v for claim in load_claims() for v in _judge_claim(claim, tested, out)))


def find_runs(
    number: Number, results: Mapping[frozenset[Any], tuple[Result, ...]]
) -> tuple[Result, ...]:
    """Return our runs of a number by precision: of its method, or of the one that it may be."""
    found = results.get(frozenset(number.result.settings.items()), ())
    if not found and number.or_method:
        settings = {**number.settings, "method": number.or_method}
        found = results.get(frozenset(paper_settings(settings).items()), ())
    return found


def study_command(study: str, out: str) -> str:
    """Return the command that runs a study.

    >>> study_command("paper-clear", "runs")
    'sterad study studies/paper-clear.toml --out runs'
    """
    return f"sterad study studies/{study}.toml --out {out}"


def train_command(number: Number, done: frozenset[int], out: str) -> str:
    """Return the shell command that runs the missing seeds of a number, all if none is missing."""
    values = {**number.settings, **find_overrides(number.settings), "out": out}
    options = [f"--{k.replace('_', '-')} {v}" for k, v in values.items() if k != "method"]
    missing = [seed for seed in range(number.runs) if seed not in done] or range(number.runs)
    train = " ".join((f"sterad train {values['method']} --tuned cifar100-released", *options))
    return f"for seed in {' '.join(map(str, missing))}; do {train} --seed $seed; done"


def judge_number(number: Number, found: Result | None, out: str) -> Verdict:
    """Return the verdict on a number."""
    errors = None if found is None else standard_errors(found, number.result)
    outcome: Outcome = "not run"
    if errors is not None:
        outcome = "holds" if abs(errors) <= MAX_STANDARD_ERRORS else "does not hold"
    is_other = found is not None and found.settings["method.name"] != number.settings["method"]
    return Verdict(
        kind="number",
        source=f"table {number.table.number}" + ("" if number.is_printed else ", commented out"),
        subject=number.description,
        paper=number.result.text,
        ours="" if found is None else found.text,
        outcome=outcome,
        standard_errors=errors,
        protocol=f"{number.or_method}; the paper does not name the law" if is_other else "",
        command=train_command(number, frozenset() if found is None else found.seeds, out),
    )


def _judge_claim(claim: Claim, results: Sequence[Result], out: str) -> list[Verdict]:
    """Return one verdict for the paper's protocol, and one for each other protocol."""
    groups: dict[str, list[Comparison]] = {"": []}
    for comparison in find_comparisons(claim, results):
        groups.setdefault(_name_protocol(claim, comparison), []).append(comparison)
    in_paper = len(find_comparisons(claim, paper_results()))
    return [
        _judge_group(claim, found, in_paper, name, out, find_obstacle(found, results))
        for name, found in groups.items()
    ]


def _name_protocol(claim: Claim, comparison: Comparison) -> str:
    """Return the dataset and the differences outside the methods; empty if nothing differs."""
    ours = without_method(comparison.better.settings, axis_paths(claim.axis))
    closest = fewest_differences(find_differences(ours, paper) for paper in claim.references)
    texts = [difference.text for difference in closest]
    dataset = str(ours["dataset.name"])
    if not texts and not _field_differences(claim, comparison):
        return ""
    return ", ".join(texts if texts and dataset in texts[0] else (dataset, *texts))


def _judge_group(
    claim: Claim, found: list[Comparison], in_paper: int, protocol: str, out: str, obstacle: str
) -> Verdict:
    weakest = min(found, key=lambda comparison: comparison.strength, default=None)
    outcome: Outcome = "not run"
    if obstacle:
        outcome = "no claim"
    elif weakest is not None and weakest.contradicts:
        outcome = "does not hold"
    elif found and (protocol or len(found) >= in_paper):
        outcome = "holds"
    fields = dict.fromkeys(text for one in found for text in _field_differences(claim, one))
    return Verdict(
        kind="claim",
        source=claim.source,
        subject=claim.sentence,
        paper=f"{in_paper} comparison{'s' * (in_paper > 1)}" if in_paper else "a figure",
        ours="" if weakest is None else _describe_comparisons(claim, weakest, found),
        outcome=outcome,
        standard_errors=None if weakest is None else weakest.standard_errors,
        protocol=", ".join((*([protocol] if protocol else []), *fields)),
        command=" && ".join(study_command(study, out) for study in claim.studies),
        obstacle=obstacle,
    )


def _field_differences(claim: Claim, comparison: Comparison) -> list[str]:
    """Return the fields of both methods that are not the released ones, except the claim's own."""
    excluded = {claim.axis, *claim.matched, *claim.within, "method.memory_batch"}
    return [
        f"{result.settings['method.name']} {difference.text}"
        for result in (comparison.better, comparison.worse)
        for difference in method_differences(result)
        if difference.path not in excluded
    ]


def _describe_comparisons(claim: Claim, weakest: Comparison, found: Sequence[Comparison]) -> str:
    rivals = sorted({str(get_setting(one.worse, claim.axis)) for one in found})
    in_favor = sum(not one.contradicts for one in found)
    names = f" with {', '.join(rivals)}" if claim.axis == "method.name" else ""
    return (
        f"{in_favor} of {len(found)} comparisons{names} in favor; the weakest: "
        f"{_describe_result(weakest.better, claim.axis)}, "
        f"{_describe_result(weakest.worse, claim.axis)}"
    )


def _describe_result(result: Result, axis: str) -> str:
    method = str(result.settings["method.name"])
    value = "" if axis == "method.name" else " " + format_setting(axis, get_setting(result, axis))
    return f"{method}{value}: {result.text}"


@dataclass(frozen=True)
class OtherProtocol:
    """Runs with equal settings outside their methods, which match no number of the paper."""

    setting: str
    """Dataset and stream."""
    methods: tuple[str, ...]
    runs: int
    differences: tuple[str, ...]
    """Differences from the closest number of the paper, and from the released methods."""


def find_other_protocols(records: Iterable[RunRecord]) -> tuple[OtherProtocol, ...]:
    """Return the groups of runs that match no number of the paper."""
    papers = [paper_settings(number.settings) for number in load_numbers()]
    known = {frozenset(settings.items()) for settings in papers}
    groups: dict[frozenset[Any], list[Result]] = {}
    for result in group_runs(records):
        if frozenset(result.settings.items()) not in known:
            key = frozenset(without_method(result.settings).items())
            groups.setdefault(key, []).append(result)
    references = [without_method(settings) for settings in papers]
    found = [_describe_group(results, references) for results in groups.values()]
    return tuple(sorted(found, key=lambda other: (other.setting, other.differences)))


def _describe_group(results: list[Result], references: list[dict[str, Any]]) -> OtherProtocol:
    settings = results[0].settings
    ours = without_method(settings)
    closest = fewest_differences(find_differences(ours, paper) for paper in references)
    fields = sorted({text for result in results for text in _describe_fields(result)})
    omitted = len(fields) - MAX_LISTED_DIFFERENCES
    more = (f"and {omitted} more",) if omitted > 0 else ()
    return OtherProtocol(
        setting=f"{settings.get('dataset.name')}, {settings.get('stream.name')}",
        methods=tuple(sorted({str(result.settings.get("method.name")) for result in results})),
        runs=sum(result.n for result in results),
        differences=(
            *(difference.text for difference in closest),
            *fields[:MAX_LISTED_DIFFERENCES],
            *more,
        ),
    )


def _describe_fields(result: Result) -> list[str]:
    name = result.settings.get("method.name")
    if name not in load_protocol()["method"]:
        return [f"{name} is not in the paper"]
    return [f"{name} {difference.text}" for difference in method_differences(result)]
