from collections.abc import Callable

import pytest

from sterad.paper.numbers import Number, numbers
from sterad.paper.others import other_protocols
from sterad.paper.verdicts import Verdict, verdicts
from sterad.results.record import RunRecord

Make = Callable[..., RunRecord]
Find = Callable[..., Number]
AGD = {"method": "agd-fd", "dataset": "cifar100", "stream": "clear", "memory": 5000}
SMALL = {"dataset.image_size": 16, "dataset.per_class": 50, "width": 20, "memory": 500}


def number_of(found: tuple[Verdict, ...], table: int, subject: str) -> Verdict:
    (one,) = [v for v in found if v.where == f"table {table}" and v.subject == subject]
    return one


def judged(found: tuple[Verdict, ...], start: str) -> list[Verdict]:
    return [one for one in found if one.kind == "claim" and one.subject.startswith(start)]


def test_without_runs_nothing_holds_and_everything_has_a_command() -> None:
    found = verdicts([])
    assert {one.outcome for one in found} == {"not run"}
    assert sum(one.kind == "number" for one in found) == len(numbers()) - 8, "8 are quoted"
    assert all(one.command.count("sterad ") >= 1 for one in found)


# 50.54 ± 0.67 over 10 runs: the pooled standard error of two runs that are 0.2 apart is 0.49.
@pytest.mark.parametrize(
    ("mean", "outcome", "errors"),
    [(50.54, "holds", 0.0), (49.6, "holds", -1.91), (51.7, "does not hold", 2.36)],
)
def test_two_standard_errors_decide_on_a_number(
    make: Make, mean: float, outcome: str, errors: float
) -> None:
    runs = [make(AGD, mean - 0.1, seed=0), make(AGD, mean + 0.1, seed=1)]
    one = number_of(verdicts(runs), 1, "agd-fd, cifar100, memory 5000")
    assert one.outcome == outcome
    assert one.errors == pytest.approx(errors, abs=0.01)
    assert one.ours == f"{mean:.2f} ± 0.14 (2 runs)"
    assert one.paper == "50.54 ± 0.67 (10 runs)"


def test_runs_count_for_every_table_that_has_their_settings(make: Make) -> None:
    found = verdicts([make(AGD, 50.3)])
    assert number_of(found, 4, "agd-fd, cifar100, memory 5000, views 5").outcome == "holds"
    assert number_of(found, 1, "agd-fd, cifar100, memory 5000").outcome == "holds"
    assert sum(one.ours != "" for one in found) == 2


def test_the_command_runs_what_is_missing(make: Make, number: Find) -> None:
    done = [make(AGD, 50.0, seed=seed) for seed in (0, 2)]
    one = number_of(verdicts(done, "there"), 1, "agd-fd, cifar100, memory 5000")
    assert one.command == (
        "for seed in 1 3 4 5 6 7 8 9; do sterad train agd-fd --tuned cifar100 --stream clear "
        "--dataset cifar100 --memory 5000 --out there --seed $seed; done"
    )


@pytest.mark.parametrize("path", [*SMALL, "stream.tasks", "method.lr", "validation"])
def test_another_protocol_is_never_held_against_a_number(make: Make, path: str) -> None:
    run = make(AGD, 50.54, **{path: 0.25})
    found = verdicts([run])
    assert not [one for one in found if one.kind == "number" and one.outcome != "not run"]
    (other,) = other_protocols([run])
    assert "0.25 (paper" in ", ".join(other.differs)


def test_a_claim_on_another_protocol_says_so(make: Make) -> None:
    blurry = {"dataset": "cifar100", "stream": "blurry", "memory": 1000}
    runs = [
        make({"method": method} | blurry, accuracy + seed, seed, **SMALL)
        for method, accuracy in (("agd-fd", 20.0), ("er", 15.0), ("scr", 21.0))
        for seed in (0, 1)
    ]
    in_paper, other = judged(verdicts(runs), "On blurry streams AGD-FD")
    assert (in_paper.outcome, in_paper.protocol) == ("not run", "")
    assert other.outcome == "does not hold"
    assert other.errors == pytest.approx(-(2**0.5))
    assert other.ours.startswith("1 of 2 comparisons with er, scr in favour; the weakest: agd-fd")
    assert set(other.protocol.split(", ")) == {
        "cifar100",
        "image size 16 (paper 32)",
        "per class 50 (paper 500)",
        "width 20 (paper 64)",
        "memory 500 (paper 1000)",
    }


def test_settings_that_were_not_released_are_named_in_a_claim(make: Make) -> None:
    er = AGD | {"method": "er"}
    runs = [make(AGD, 50.0), make(er, 40.0, **{"method.lr": 0.5})]
    in_paper, other = judged(verdicts(runs), "With clear boundaries and many")
    assert (in_paper.outcome, in_paper.ours) == ("not run", "")
    assert (other.outcome, other.errors) == ("holds", None), "single runs have no standard error"
    assert other.protocol == "cifar100, er lr 0.5 (paper 0.01)"


def test_a_claim_holds_only_if_all_of_it_was_run(make: Make) -> None:
    rivals = {"er": 40.0, "scr": 41.0}
    some = [make(AGD | {"method": m}, a) for m, a in (rivals | {"agd-fd": 50.0}).items()]
    (one,) = judged(verdicts(some), "With clear boundaries and many")
    assert one.outcome == "not run"
    assert one.ours.startswith("2 of 2 comparisons with er, scr in favour")
    (one,) = judged(verdicts([*some, make(AGD | {"method": "ocm"}, 51.0)]), "With clear bound")[:1]
    assert one.outcome == "does not hold", "one comparison is enough to refute it"
    every = [n for n in numbers() if not n.quoted and n.table.number < 3]
    everything = [make(dict(n.settings), n.mean + s, s) for n in every for s in (-1, 1)]
    assert [v.outcome for v in judged(verdicts(everything), "With clear")] == ["holds", "holds"]


def test_validation_runs_decide_nothing(make: Make) -> None:
    runs = [make(AGD | {"method": m}, 40.0, validation=0.1) for m in ("agd-fd", "er")]
    assert {one.outcome for one in verdicts(runs)} == {"not run"}
