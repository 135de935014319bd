"""Live runs: a feed without an end, strings for labels, and a kill in between."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sterad.data.synthetic import Synthetic
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.live import live_config
from sterad.experiments.run import run

ONE = Execution(threads=1)
DATA = Synthetic(classes=3, per_class=40).load()


def config() -> RunConfig:
    return live_config(views=1, projection=8, width=2, memory=20, stretch=50)


def feed(start: int = 0, stop: int = 12) -> Iterator[tuple[Any, Any]]:
    order = np.random.default_rng(0).permutation(120)
    for at in range(start, stop):
        chosen = order[10 * at : 10 * at + 10]
        yield DATA.train_images[chosen], [f"kind {label}" for label in DATA.train_labels[chosen]]


class BrokenFeedError(Exception):
    """The feed breaks down."""


def test_a_feed_is_asked_then_learned_to_its_end(tmp_path: Path) -> None:
    record = run(config(), tmp_path, ONE, feed=feed())
    assert record.stream.samples == 120
    assert [moment.samples for moment in record.moments] == [50, 100, 120]
    assert sorted(record.stream.class_names) == ["kind 0", "kind 1", "kind 2"]
    assert sum(map(sum, record.stream.proportions)) == 120
    weights = [50, 50, 20]
    shares = [moment.accuracy for moment in record.moments]
    overall = sum(w * s for w, s in zip(weights, shares, strict=True)) / 120
    assert record.test_then_train_accuracy == pytest.approx(overall)
    assert record.final_average_accuracy == shares[-1]
    assert run(config(), tmp_path, ONE, feed=iter(())) == record, "a finished run is read"


def test_a_broken_feed_goes_on_from_the_checkpoint_with_the_same_labels(tmp_path: Path) -> None:
    whole = run(config(), tmp_path / "whole", ONE, feed=feed())

    def broken() -> Iterator[tuple[Any, Any]]:
        yield from feed(0, 6)
        raise BrokenFeedError

    with pytest.raises(BrokenFeedError):
        run(config(), tmp_path / "cut", ONE, checkpoint_every=1, feed=broken())
    resumed = run(config(), tmp_path / "cut", ONE, checkpoint_every=1, feed=feed(6))
    assert resumed.metrics() == whole.metrics()


def test_feeds_and_streams_are_not_mixed_up(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="goes with the stream live"):
        run(config(), tmp_path, ONE)
    with pytest.raises(SteradError, match="goes with the stream live"):
        run(RunConfig.of(method="finetune"), tmp_path, ONE, feed=feed())
    with pytest.raises(SteradError, match="before its first batch"):
        run(config(), tmp_path, ONE, feed=iter(()))
    assert not list(tmp_path.iterdir())
