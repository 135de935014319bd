from collections.abc import Callable

from sterad.paper.others import other_protocols
from sterad.paper.verdicts import verdicts
from sterad.paper.wording import BEGIN, END, by_how_much, section, summary, within
from sterad.results.record import RunRecord

Make = Callable[..., RunRecord]
AGD = {"method": "agd-fd", "dataset": "cifar100", "stream": "clear", "memory": 5000}


def test_the_section_tells_what_holds_and_what_would_run_the_rest(make: Make) -> None:
    runs = [make(AGD, 45.0), make(AGD, 20.0, width=20)]
    found = verdicts(runs)
    text = section(found, other_protocols(runs), "runs")
    assert summary(found) in text
    assert "numbers: 0 hold, 2 do not hold, 232 not run" in text
    row = "| agd-fd, cifar100, memory 5000 | 50.54 ± 0.67 (10 runs) | 45.00 (1 run) |"
    assert f"{row} does not hold: 7.9 standard errors below the paper |" in text
    assert "| cifar100, clear | agd-fd | 1 | width 20 (paper 64) |" in text
    assert text.count("sterad train") == 232


def test_noise_is_named(make: Make) -> None:
    means = {"agd-fd": 50.0, "vmf-fd": 49.9}
    runs = [
        make(AGD | {"method": method}, mean + seed, seed, width=20)
        for method, mean in means.items()
        for seed in (0, 1)
    ]
    (one,) = [v for v in verdicts(runs) if v.kind == "claim" and v.ours]
    assert by_how_much(one) == "holds, by 0.1 standard errors, noise may decide"


def test_what_stands_around_the_marks_stays() -> None:
    first = within("", "old")
    assert first is not None
    again = within(f"# By hand\n\n{first}\nAlso by hand\n", "new")
    assert again == f"# By hand\n\n{BEGIN}\n\nnew\n{END}\nAlso by hand\n"
    assert within("# By hand only\n", "new") is None
