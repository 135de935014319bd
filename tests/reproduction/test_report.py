from collections.abc import Callable

from sterad.report.page import compose, render
from sterad.results.record import RunRecord
from sterad_reproduction.report import (
    BEGIN,
    END,
    count_outcomes,
    describe_outcome,
    paper_section,
    replace_marked,
    to_markdown,
)
from sterad_reproduction.verdicts import find_other_protocols, judge

Make = Callable[..., RunRecord]
AGD = {"method": "agd-fd", "dataset": "cifar100", "stream": "clear", "memory": 5000}


def test_markdown_has_verdicts_and_commands(make: Make) -> None:
    runs = [make(AGD, 45.0), make(AGD, 20.0, width=20)]
    verdicts = judge(runs)
    text = to_markdown(verdicts, find_other_protocols(runs), "runs")
    assert count_outcomes(verdicts) in text
    assert "numbers: 0 hold, 3 do not hold, 231 not run" in text
    row = "| agd-fd, cifar100, memory 5000 | 50.54 ± 0.67 (10 runs) | 45.00 (1 run) |"
    assert f"{row} does not hold: 7.9 standard errors below the paper |" in text
    assert "| cifar100, clear | agd-fd | 1 | width 20 (paper 64) |" in text
    assert text.count("sterad train") == 231


def test_a_verdict_within_noise_is_marked(make: Make) -> None:
    means = {"agd-fd": 50.0, "vmf-fd": 49.9}
    runs = [
        make(AGD | {"method": method}, mean + seed, seed, width=20)
        for method, mean in means.items()
        for seed in (0, 1)
    ]
    runs.append(make(AGD | {"method": "randumb"}, 20.0, width=20))
    (verdict,) = [v for v in judge(runs) if v.kind == "claim" and v.ours]
    assert describe_outcome(verdict) == "holds, by 0.1 standard errors, within noise"


def test_text_outside_the_marks_is_kept() -> None:
    first = replace_marked("", "old")
    assert first is not None
    second = replace_marked(f"# Title\n\n{first}\nAlso by hand\n", "new")
    assert second == f"# Title\n\n{BEGIN}\n\nnew\n{END}\nAlso by hand\n"
    assert replace_marked("# Title only\n", "new") is None


def test_the_page_compares_with_the_paper_only_on_request(make: Make) -> None:
    runs = [make(AGD, 45.0), make(AGD, 20.0, width=20)]
    page = render(compose(runs, paper=True))
    assert 'id="paper"' in page
    assert 'href="#paper"' in page
    assert "Numbers: 0 hold, 3 do not hold, 231 not run" in page
    assert "does not hold: 7.9 standard errors below the paper" in page
    assert "sterad verify" in page
    without = render(compose(runs))
    assert 'id="paper"' not in without
    assert "sterad verify" not in without


def test_the_section_of_the_paper_is_absent_if_nothing_can_be_compared(make: Make) -> None:
    page = render(compose([make(AGD | {"dataset": "digits"}, 45.0)], paper=True))
    assert 'id="paper"' not in page
    assert 'href="#paper"' not in page
    assert "The paper: none of its numbers and claims can be compared with these runs" in page


def test_the_figures_of_the_paper_are_drawn_or_name_their_runs(make: Make) -> None:
    def figures(runs: list[RunRecord]) -> dict[str, bool]:
        found = paper_section(runs, compose(runs).sections).figures
        return {key: is_drawn for _, key, is_drawn, _ in found}

    one = figures([make(AGD, 45.0)])
    assert one == {"sphere": False, "stream": False, "sweep": False, "seconds": True, "loss": False}
    variances = [make(AGD, 45.0, **{"method.variance": v}) for v in (0.2, 2.0, 7.0)]
    assert figures(variances)["sweep"]
    widths = [make(AGD, 45.0, width=w) for w in (10, 20, 40)]
    assert not figures(widths)["sweep"], "a sweep over another setting"
    page = render(compose([make(AGD, 45.0)], paper=True))
    assert "not drawn, needs a run of agd-fd or vmf-fd" in page
