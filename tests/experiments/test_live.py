"""Live runs: a feed of unknown length, text labels, and a resumed feed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from sterad.data.synthetic import Synthetic
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.live import LiveSession, live_config
from sterad.experiments.run import run

ONE_THREAD = Execution(threads=1)
DATA = Synthetic(classes=3, per_class=40).load()


def config() -> RunConfig:
    return live_config(views=1, projection=8, width=2, memory=20, stretch=50)


def feed(start: int = 0, stop: int = 12) -> Iterator[tuple[Any, Any]]:
    order = np.random.default_rng(0).permutation(120)
    for step in range(start, stop):
        batch = order[10 * step : 10 * step + 10]
        yield DATA.train_images[batch], [f"kind {label}" for label in DATA.train_labels[batch]]


class BrokenFeedError(Exception):
    """The feed fails."""


def test_each_batch_of_a_feed_is_tested_then_trained_on(tmp_path: Path) -> None:
    record = run(config(), tmp_path, ONE_THREAD, feed=feed())
    assert record.stream.samples == 120
    assert [moment.samples for moment in record.moments] == [50, 100, 120]
    assert sorted(record.stream.class_names) == ["kind 0", "kind 1", "kind 2"]
    assert sum(map(sum, record.stream.proportions)) == 120
    samples = [50, 50, 20]
    accuracies = [moment.accuracy for moment in record.moments]
    overall = sum(n * a for n, a in zip(samples, accuracies, strict=True)) / 120
    assert record.test_then_train_accuracy == pytest.approx(overall)
    assert record.final_average_accuracy == accuracies[-1]
    assert run(config(), tmp_path, ONE_THREAD, feed=iter(())) == record, (
        "a finished run is not repeated"
    )


def test_a_feed_that_failed_resumes_from_the_checkpoint(tmp_path: Path) -> None:
    uninterrupted = run(config(), tmp_path / "uninterrupted", ONE_THREAD, feed=feed())

    def failing() -> Iterator[tuple[Any, Any]]:
        yield from feed(0, 6)
        raise BrokenFeedError

    with pytest.raises(BrokenFeedError):
        run(config(), tmp_path / "resumed", ONE_THREAD, checkpoint_every=1, feed=failing())
    resumed = run(config(), tmp_path / "resumed", ONE_THREAD, checkpoint_every=1, feed=feed(6))
    assert resumed.metrics() == uninterrupted.metrics()


def test_a_run_whose_feed_has_ended_finishes_without_another_batch(tmp_path: Path) -> None:
    whole = run(config(), tmp_path, ONE_THREAD, 1, feed=feed())
    (tmp_path / whole.id / "record.json").unlink()  # as if it was killed before its record
    failing = patch.object(LiveSession, "finish", side_effect=BrokenFeedError)
    with failing, pytest.raises(BrokenFeedError):  # after its feed and before the last moment
        run(config(), tmp_path / "killed", ONE_THREAD, 1, feed=feed())
    for out in (tmp_path, tmp_path / "killed"):
        assert run(config(), out, ONE_THREAD, 1, feed=iter(())).metrics() == whole.metrics()


def test_a_run_that_was_killed_before_its_first_step_needs_a_batch(tmp_path: Path) -> None:
    failing = patch.object(LiveSession, "learn", side_effect=BrokenFeedError)
    with failing, pytest.raises(BrokenFeedError):
        run(config(), tmp_path, ONE_THREAD, feed=feed())
    with pytest.raises(SteradError, match="before its first batch"):
        run(config(), tmp_path, ONE_THREAD, feed=iter(()))


def test_a_feed_needs_the_live_stream_and_a_batch(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="goes with the stream live"):
        run(config(), tmp_path, ONE_THREAD)
    with pytest.raises(SteradError, match="goes with the stream live"):
        run(RunConfig.of(method="finetune"), tmp_path, ONE_THREAD, feed=feed())
    with pytest.raises(SteradError, match="before its first batch"):
        run(config(), tmp_path, ONE_THREAD, feed=iter(()))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_long_feed_keeps_a_bounded_number_of_moments_and_resumes(tmp_path: Path) -> None:
    values = {"method": "finetune", "encoder": "mlp", "width": 1, "stretch": 10}

    def long_feed(start: int, stop: int, fails: bool = False) -> Iterator[tuple[Any, Any]]:
        for step in range(start, stop):
            yield from feed(step % 12, step % 12 + 1)
        if fails:
            raise BrokenFeedError

    whole = run(live_config(**values), tmp_path / "whole", ONE_THREAD, feed=long_feed(0, 230))
    assert 50 <= len(whole.moments) <= 100
    assert whole.moments[-1].samples == sum(map(sum, whole.stream.proportions)) == 2300
    ends = [0, *(moment.samples for moment in whole.moments)]
    correct = sum(
        (b - a) * m.accuracy for a, b, m in zip(ends, ends[1:], whole.moments, strict=False)
    )
    assert whole.test_then_train_accuracy == pytest.approx(correct / 2300)
    out = tmp_path / "resumed"
    for start, stop in ((0, 99), (99, 101), (101, 203)):
        with pytest.raises(BrokenFeedError):
            run(live_config(**values), out, ONE_THREAD, 1, feed=long_feed(start, stop, True))
    resumed = run(live_config(**values), out, ONE_THREAD, 1, feed=long_feed(203, 230))
    assert resumed.metrics() == whole.metrics()
