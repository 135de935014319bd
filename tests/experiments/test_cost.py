"""Estimates of the time of a run, from records or from nominal speeds."""

import dataclasses
from pathlib import Path

import pytest

from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig
from sterad.experiments.cost import (
    MIN_SECONDS,
    NOMINAL_SECONDS,
    estimate,
    images,
    multiplications,
    size_of,
)
from sterad.experiments.run import run
from sterad.results.record import RunRecord

TINY = {
    "dataset": "synthetic", "classes": 4, "per_class": 10, "test_per_class": 5, "tasks": 2,
    "memory": 8, "memory_batch": 4, "views": 1, "width": 2, "anytime": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return run(
        RunConfig.of(method="er", **TINY), tmp_path_factory.mktemp("runs"), Execution("cpu", 1)
    )


def count_images(**values: object) -> float:
    config = RunConfig.of(**values)
    return images(config, size_of(config.dataset))


def test_the_size_of_a_named_dataset_is_known_without_its_files(tmp_path: Path) -> None:
    config = RunConfig.of(
        dataset="cifar100", per_class=50, classes=20, image_size=16, root=tmp_path
    )
    size = size_of(config.dataset)
    assert (size.train, size.test, size.shape) == (1000, 2000, (3, 16, 16))


def test_training_evaluation_and_class_means_are_counted() -> None:
    cifar = {"dataset": "cifar100", "memory": 5000}
    evaluated = 10_000 * 5.5 / 3  # ten evaluations, each with a tenth more of the classes
    assert count_images(method="er", **cifar) == pytest.approx(5000 * 74 + evaluated)
    means = 10 * 5000 / 3
    assert count_images(method="agd-fd", **cifar) == pytest.approx(5000 * 444 + evaluated + means)


def test_training_from_scratch_is_counted_at_each_consolidation() -> None:
    cifar = {"dataset": "cifar100", "memory": 5000}
    assert count_images(method="gdumb", **cifar) == pytest.approx(10 * 30 * 5000 + 10_000 * 5.5 / 3)
    assert count_images(method="joint", **cifar) == pytest.approx(20 * 50_000 + 10_000 / 3)


def test_without_records_the_estimate_is_nominal() -> None:
    config = RunConfig.of(method="er", dataset="cifar10", memory=500)
    seconds, basis = estimate(config, [])
    assert seconds == pytest.approx(NOMINAL_SECONDS[64] * images(config, size_of(config.dataset)))
    assert "nominal" in basis
    half = RunConfig.of(method="er", dataset="cifar10", memory=500, image_size=16)
    assert estimate(half, [])[0] == pytest.approx(seconds / 4, rel=0.01)


def test_the_time_per_image_has_a_minimum() -> None:
    config = RunConfig.of(method="er", **TINY)
    size = size_of(config.dataset)
    assert estimate(config, [])[0] == pytest.approx(MIN_SECONDS * images(config, size))


def test_the_speed_comes_from_records_of_the_same_network_and_size(record: RunRecord) -> None:
    other = RunConfig.of(method="scr", **TINY)
    seconds, basis = estimate(other, [record, record])
    assert "the median of 2 runs of this network and size" in basis
    size = size_of(other.dataset)
    assert seconds == pytest.approx(images(other, size) / record.images_per_second)
    assert "nominal" in estimate(RunConfig.of(method="scr", **TINY | {"width": 3}), [record])[1]


def test_records_of_other_seeds_are_preferred(record: RunRecord) -> None:
    slow = dataclasses.replace(record, seconds=100.0)
    estimated = estimate(RunConfig.of(method="er", seed=5, **TINY), [slow])
    assert estimated == (100.0, "other seeds of it: 1 finished")


def test_the_count_is_close_to_that_of_a_run(record: RunRecord) -> None:
    config = RunConfig.of(method="er", **TINY)
    size = size_of(config.dataset)
    with_record, without = images(config, size, [record]), images(config, size)
    # At the first steps the memory holds less than a memory batch.
    assert with_record == pytest.approx(without, rel=0.3)


@pytest.mark.parametrize("encoder", ["resnet18", "preact-resnet18", "resnet18-7x7"])
def test_multiplications_grow_with_the_square_of_the_side(encoder: str) -> None:
    small, large = (multiplications(encoder, (3, side, side), 8) for side in (32, 64))
    assert large == 4 * small
