from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sterad.results.record import RunRecord
from sterad_reproduction.numbers import load_numbers
from sterad_reproduction.verdicts import Verdict, find_other_protocols, judge

Make = Callable[..., RunRecord]
AGD = {"method": "agd-fd", "dataset": "cifar100", "stream": "clear", "memory": 5000}
SMALL = {"dataset.image_size": 16, "dataset.per_class": 50, "width": 20, "memory": 500}


def control(make: Make, settings: dict[str, Any], accuracy: float, **differences: Any) -> RunRecord:
    return make(settings | {"method": "randumb"}, accuracy, **differences)


def number_verdict(verdicts: tuple[Verdict, ...], table: int, subject: str) -> Verdict:
    (verdict,) = [v for v in verdicts if v.source == f"table {table}" and v.subject == subject]
    return verdict


def claim_verdicts(verdicts: tuple[Verdict, ...], start: str) -> list[Verdict]:
    return [v for v in verdicts if v.kind == "claim" and v.subject.startswith(start)]


def test_without_runs_everything_has_a_command() -> None:
    verdicts = judge([])
    assert {v.outcome for v in verdicts} == {"not run"}
    assert sum(v.kind == "number" for v in verdicts) == len(load_numbers()) - 8, "8 are quoted"
    assert all("sterad " in v.command for v in verdicts)


# 50.54 ± 0.67 over 10 runs: the pooled standard error of two runs that are 0.2 apart is 0.49.
@pytest.mark.parametrize(
    ("mean", "outcome", "errors"),
    [(50.54, "holds", 0.0), (49.6, "holds", -1.91), (51.7, "does not hold", 2.36)],
)
def test_a_number_holds_within_two_standard_errors(
    make: Make, mean: float, outcome: str, errors: float
) -> None:
    runs = [make(AGD, mean - 0.1, seed=0), make(AGD, mean + 0.1, seed=1)]
    one = number_verdict(judge(runs), 1, "agd-fd, cifar100, memory 5000")
    assert one.outcome == outcome
    assert one.standard_errors == pytest.approx(errors, abs=0.01)
    assert one.ours == f"{mean:.2f} ± 0.14 (2 runs)"
    assert one.paper == "50.54 ± 0.67 (10 runs)"


def test_runs_count_for_every_table_with_their_settings(make: Make) -> None:
    verdicts = judge([make(AGD, 50.3)])
    assert number_verdict(verdicts, 4, "agd-fd, cifar100, memory 5000, views 5").outcome == "holds"
    assert number_verdict(verdicts, 1, "agd-fd, cifar100, memory 5000").outcome == "holds"
    of_law = number_verdict(
        verdicts, 3, "vmf-fd, cifar100, directions basis, memory 5000, memory batch 64"
    )
    assert of_law.protocol == "agd-fd; the paper does not name the law"
    assert sum(v.ours != "" for v in verdicts) == 3


def test_the_command_runs_the_missing_seeds(make: Make) -> None:
    done = [make(AGD, 50.0, seed=seed) for seed in (0, 2)]
    one = number_verdict(judge(done, "there"), 1, "agd-fd, cifar100, memory 5000")
    assert one.command == (
        "for seed in 1 3 4 5 6 7 8 9; do sterad train agd-fd --tuned cifar100-released "
        "--stream clear --dataset cifar100 --memory 5000 --out there --seed $seed; done"
    )


@pytest.mark.parametrize("path", [*SMALL, "stream.tasks", "method.lr", "validation"])
def test_runs_under_another_protocol_are_not_compared_with_a_number(make: Make, path: str) -> None:
    run = make(AGD, 50.54, **{path: 0.25})
    verdicts = judge([run])
    assert not [v for v in verdicts if v.kind == "number" and v.outcome != "not run"]
    (other,) = find_other_protocols([run])
    assert "0.25 (paper" in ", ".join(other.differences)


def test_a_claim_under_another_protocol_names_it(make: Make) -> None:
    blurry = {"dataset": "cifar100", "stream": "blurry", "memory": 1000}
    runs = [
        make({"method": method} | blurry, accuracy + seed, seed, **SMALL)
        for method, accuracy in (("agd-fd", 20.0), ("er", 15.0), ("scr", 21.0))
        for seed in (0, 1)
    ]
    runs.append(control(make, blurry, 10.0, **SMALL))
    in_paper, other = claim_verdicts(judge(runs), "On blurry streams AGD-FD")
    assert (in_paper.outcome, in_paper.protocol) == ("not run", "")
    assert other.outcome == "does not hold"
    assert other.standard_errors == pytest.approx(-(2**0.5))
    assert other.ours.startswith("1 of 2 comparisons with er, scr in favor; the weakest: agd-fd")
    assert set(other.protocol.split(", ")) == {
        "cifar100",
        "image size 16 (paper 32)",
        "per class 50 (paper 500)",
        "width 20 (paper 64)",
        "memory 500 (paper 1000)",
    }


def test_method_values_that_are_not_the_released_ones_are_named(make: Make) -> None:
    er = AGD | {"method": "er"}
    runs = [make(AGD, 50.0), make(er, 40.0, **{"method.lr": 0.5}), control(make, AGD, 30.0)]
    in_paper, other = claim_verdicts(judge(runs), "With clear boundaries and many")
    assert (in_paper.outcome, in_paper.ours) == ("not run", "")
    assert (other.outcome, other.standard_errors) == ("holds", None), (
        "single runs have no standard error"
    )
    assert other.protocol == "cifar100, er lr 0.5 (paper 0.01)"


def test_a_claim_holds_only_if_all_comparisons_were_run(make: Make) -> None:
    rivals = {"er": 40.0, "scr": 41.0}
    some = [make(AGD | {"method": m}, a) for m, a in (rivals | {"agd-fd": 50.0}).items()]
    some.append(control(make, AGD, 30.0))
    (one,) = claim_verdicts(judge(some), "With clear boundaries and many")
    assert one.outcome == "not run"
    assert one.ours.startswith("2 of 2 comparisons with er, scr in favor")
    (one,) = claim_verdicts(
        judge([*some, make(AGD | {"method": "ocm"}, 51.0)]), "With clear bound"
    )[:1]
    assert one.outcome == "does not hold", "one contradicting comparison is enough"
    numbers = [n for n in load_numbers() if not n.is_quoted and n.table.number < 3]
    everything = [make(dict(n.settings), n.mean + s, s) for n in numbers for s in (-1, 1)]
    everything += [control(make, dict(n.settings), 5.0) for n in numbers]
    assert [v.outcome for v in claim_verdicts(judge(everything), "With clear")] == [
        "holds",
        "holds",
    ]


def test_validation_runs_are_not_judged(make: Make) -> None:
    runs = [make(AGD | {"method": m}, 40.0, validation=0.1) for m in ("agd-fd", "er")]
    assert {v.outcome for v in judge(runs)} == {"not run"}


def test_claims_are_judged_only_where_the_best_method_is_clearly_above_the_control(
    make: Make,
) -> None:
    def judged(*controls: RunRecord) -> Verdict:
        accuracies = {"agd-fd": 30.0, "er": 20.0}
        runs = [
            make(AGD | {"method": name}, accuracy + seed, seed, **SMALL)
            for name, accuracy in accuracies.items()
            for seed in (0, 1)
        ]
        return claim_verdicts(judge([*runs, *controls]), "With clear boundaries and many")[1]

    missing = judged()
    assert (missing.outcome, missing.obstacle) == (
        "no claim",
        "no control was run on cifar100, clear",
    )
    close = judged(control(make, AGD, 26.0, **SMALL))
    assert close.outcome == "no claim"
    assert "agd-fd, has 30.50 ± 0.71 (2 runs), and the control 26.00" in close.obstacle
    noisy = [control(make, AGD, a, seed=s, **SMALL) for s, a in enumerate((10.0, 26.0, 33.0))]
    assert judged(*noisy).outcome == "no claim", "7.5 points are less than two standard errors"
    assert judged(control(make, AGD, 25.0, **SMALL)).outcome == "holds"
    elsewhere = control(make, AGD, 1.0, **SMALL | {"dataset.per_class": 100})
    assert judged(elsewhere).obstacle.startswith("no control")


def test_runs_in_different_precisions_are_not_mixed(make: Make) -> None:
    def run(method: str, accuracy: float, precision: str, seed: int = 0) -> RunRecord:
        made = make(AGD | {"method": method}, accuracy, seed)
        return replace(made, execution={"precision": precision})

    halves = [run("agd-fd", 50.0, "bfloat16", seed) for seed in (0, 1)]
    runs = [run("agd-fd", 40.0, "float32"), *halves, run("er", 45.0, "float32")]
    one = number_verdict(judge(runs), 1, "agd-fd, cifar100, memory 5000")
    assert one.ours == "50.00 ± 0.00 (2 runs)", "the precision with most runs counts"
    runs.append(control(make, AGD, 10.0))
    (claim,) = claim_verdicts(judge(runs), "With clear boundaries and many")
    assert claim.outcome == "does not hold"
    assert "agd-fd: 40.00" in claim.ours
