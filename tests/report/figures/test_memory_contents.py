import dataclasses
from collections.abc import Callable

import numpy as np
from sterad.report.figures.memory_contents import draw, holdings, keeps_images

from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def test_holdings_begin_empty_and_follow_the_moments(make_record: Build) -> None:
    record = make_record()
    samples, held = holdings(record)
    assert samples.tolist() == [0, *(moment.samples for moment in record.moments)]
    assert held[0].sum() == 0
    assert tuple(held[-1]) == record.moments[-1].memory


def test_a_memory_that_knows_fewer_classes_is_filled_up(make_record: Build) -> None:
    record = make_record()
    first = dataclasses.replace(record.moments[0], memory=(3, 4))
    record = dataclasses.replace(record, moments=(first, *record.moments[1:]))
    assert holdings(record)[1][1].tolist() == [3, 4, 0, 0, 0, 0, 0, 0, 0, 0]


def test_a_band_per_task_up_to_all_that_is_held(make_record: Build) -> None:
    record = make_record()
    axes = draw(record).axes[0]
    assert [band.get_label() for band in axes.collections] == [f"task {k}" for k in range(1, 6)]
    assert np.asarray(axes.lines[-1].get_ydata())[-1] == sum(record.moments[-1].memory)
    assert len(axes.lines) == 10  # one fine line per class


def test_tasks_that_share_classes_are_one_band(make_record: Build) -> None:
    record = make_record()
    stream = dataclasses.replace(record.stream, tasks=(tuple(range(10)),) * 3)
    axes = draw(dataclasses.replace(record, stream=stream)).axes[0]
    assert [band.get_label() for band in axes.collections] == ["all classes"]


def test_finetune_keeps_nothing(make_record: Build) -> None:
    assert keeps_images(make_record())
    assert not keeps_images(make_record("finetune"))
