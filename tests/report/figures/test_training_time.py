import dataclasses
from collections.abc import Callable

from sterad.report.figures.training_time import draw

from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def test_a_bar_a_method_in_a_fitting_unit(make_record: Build) -> None:
    slow = [dataclasses.replace(make_record(seed=s), seconds=600.0 + 60 * s) for s in range(3)]
    methods = [("agd-fd", slow), ("nobody", []), ("finetune", [make_record("finetune")])]
    axes = draw(methods).axes[0]
    assert [round(bar.get_width(), 2) for bar in axes.patches] == [11.0, 0.16]  # type: ignore[attr-defined]
    assert axes.get_xlabel() == "minutes of a run"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["agd-fd", "finetune"]
    assert [text.get_text() for text in axes.texts] == ["11.0", "0.2"]
