"""GSA: whole steps against a literal transcription, and the tasks of the samples in memory."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sterad.errors import SteradError
from sterad.memory import Reservoir, SlotMemory
from sterad.methods.gsa import GSA, GSAConfig
from sterad.streams import Batch, Boundary
from sterad.testing import check_method
from tests.methods.scaffold import (
    assert_networks_close,
    assert_resumes,
    build,
    count_images,
    open_stream,
    random_images,
    take_step,
    train,
)

STREAM = open_stream(classes=6, per_class=10, batch_size=5)  # two tasks of six batches


def build_gsa(classes: int | None = 6, announced: bool = True, **fields: Any) -> GSA:
    values: dict[str, Any] = {"memory_batch": 16, "optimizer": "sgd", "momentum": 0.0} | fields
    return build(GSA, classes, 30, {"announced": announced}, **values)


def literal_doubles(learner: GSA, x: Tensor) -> Tensor:
    """Return a view of the images and of their copies, mirrored half by half, pixel by pixel."""
    mirrored, half = torch.empty_like(x), x.shape[3] // 2
    for column in range(x.shape[3]):
        start = column // half * half
        mirrored[..., column] = x[..., start + half - 1 - (column - start)]
    return learner.augmentation(torch.cat([x, mirrored]), learner.rng["views"])


def literal_posteriors(logits: Tensor, labels: list[int], classes: list[int]) -> list[Tensor]:
    """Return the posteriors of `classes`, row by row."""
    return [
        row[classes].exp() / row[classes].exp().sum() for row, _ in zip(logits, labels, strict=True)
    ]


def literal_loss(
    learner: GSA, network: nn.Module, new: Batch, balanced: Batch, masses: list[list[float]]
) -> Tensor:
    """Return the loss; `masses` of the seen classes, positive and negative, are updated."""
    seen, task_classes = learner.seen.tolist(), learner.task_classes.tolist()
    logits = network(literal_doubles(learner, new.x))
    labels = new.y.tolist() * 2
    rows = literal_posteriors(logits, labels, task_classes)
    chosen = [p[task_classes.index(y)].log() for p, y in zip(rows, labels, strict=True)]
    loss = -torch.stack(chosen).mean()
    logits, labels = network(literal_doubles(learner, balanced.x)), balanced.y.tolist() * 2
    rows = literal_posteriors(logits, labels, seen)
    for p, y in zip(rows, labels, strict=True):
        for k, c in enumerate(seen):
            if c == y:
                masses[0][c] += 1 - p[k].item()
            else:
                masses[1][c] += p[k].item()
    total = torch.zeros(())
    for p, y in zip(rows, labels, strict=True):
        weight = 2 / (1 + math.exp(1 - masses[0][y] / masses[1][y]))
        weight = 1.0 if learner.task_batches <= learner.config.warmup else weight
        total = total - weight * p[seen.index(y)].log()
    return loss + 2 * total / len(labels)


def check_next_step(learner: GSA, step: int) -> None:
    """Take a step and require the weights of a literal one."""
    reference, batch = copy.deepcopy(learner), STREAM.batch(step)
    masses = [row[:] for row in learner.masses.tolist()]
    images = count_images(learner, batch)
    memory = reference.memory
    assert isinstance(memory, SlotMemory)
    columns = memory.labels.tolist(), memory.column("task").tolist()
    stored = list(zip(*columns, strict=True))
    reference.see(batch)
    retrieved = reference.retrieve(batch)
    tasks = retrieved.extra["task"].tolist()
    assert set(zip(retrieved.y.tolist(), tasks, strict=True)) <= set(stored)
    is_current = [task == reference.task for task in tasks]
    old, new_classes = len(reference.old), len(reference.seen) - len(reference.old)
    assert len(is_current) - sum(is_current) == 16 * old // (old + new_classes)
    assert sum(is_current) == min(16 // 2 - 5, sum(t == reference.task for _, t in stored))
    mine = torch.tensor(is_current)
    new = Batch(torch.cat([batch.x, retrieved.x[mine]]), torch.cat([batch.y, retrieved.y[mine]]))
    taken = 16 * new_classes // (old + new_classes)
    balanced = Batch(
        torch.cat([retrieved.x[~mine], new.x[:taken]]),
        torch.cat([retrieved.y[~mine], new.y[:taken]]),
    )
    literal_loss(reference, reference.network, new, balanced, masses).backward()
    assert images == 2 * (len(new) + len(balanced))
    with torch.no_grad():
        for weight in reference.network.parameters():
            assert weight.grad is not None
            weight.sub_(1e-3 * (weight.grad + 1e-4 * weight))
    assert_networks_close(learner.network, reference.network, atol=2e-6, buffer_atol=1e-5)
    assert torch.allclose(learner.masses, torch.tensor(masses), atol=1e-3)


def test_one_step_of_the_first_task_equals_the_literal_algorithm() -> None:
    learner = build_gsa(warmup=2)
    train(learner, STREAM, 3)
    check_next_step(learner, 3)


@pytest.mark.parametrize("warmup", [1, 5])
def test_one_step_of_a_later_task_equals_the_literal_algorithm(warmup: int) -> None:
    learner = build_gsa(warmup=warmup)
    train(learner, STREAM, 9)
    assert learner.task == 1
    check_next_step(learner, 9)


def test_the_first_batch_is_learned_without_a_memory_and_gives_no_weights() -> None:
    learner = build_gsa()
    batch = STREAM.batch(0)
    assert count_images(learner, batch) == 2 * len(batch)
    assert not learner.masses.any()


def test_the_memory_keeps_tasks_announced_or_detected() -> None:
    learner = build_gsa(announced=False, detection_lag=2)
    x = random_images(4)
    for labels in ([0, 1, 0, 1], [0, 1, 0, 1], [2, 1, 2, 1], [2, 3, 1, 1]):
        learner.observe(Batch(x, torch.tensor(labels)))
    (stored,) = learner.memory.everything()
    assert stored.extra["task"].tolist() == [0] * 8 + [1] * 8
    assert (learner.old.tolist(), learner.task_classes.tolist()) == ([0, 1], [1, 2, 3])
    assert (learner.count_new(10), learner.count_old(10)) == (5, 5)


def test_tasks_with_the_same_classes_replay_earlier_samples_only() -> None:
    learner, x = build_gsa(), random_images(10)
    learner.observe(Batch(x, torch.arange(10) % 2))
    learner.boundary(Boundary(task=0, step=1))
    learner.observe(Batch(x, torch.arange(10) % 2))
    retrieved = learner.retrieve(Batch(x[:5], torch.arange(5) % 2))
    assert sorted(retrieved.extra["task"].tolist()) == [0] * 10 + [1] * 3


def test_a_learner_that_was_widened_resumes_bit_for_bit() -> None:
    learner, fresh = build_gsa(None), build_gsa(None)
    train(learner, STREAM, 8)
    assert_resumes(learner, fresh, *(STREAM.batch(step) for step in (8, 9)))
    assert fresh.masses.shape == (2, fresh.network.outputs)


@pytest.mark.parametrize("retrieval", ["class-balanced", "mir"])
def test_other_retrievals_draw_within_the_tasks(retrieval: str) -> None:
    learner = build_gsa(retrieval=retrieval, review=True)
    train(learner, STREAM, 9)
    assert bool(take_step(learner, STREAM.batch(9)).isfinite())
    assert set(learner.retrieve(STREAM.batch(9)).extra["task"].tolist()) == {0, 1}


def test_default_settings_are_those_published() -> None:
    config = GSAConfig()
    assert (config.optimizer, config.lr, config.weight_decay) == ("adam", 1e-3, 1e-4)
    assert (config.beta2, config.memory_batch, config.warmup) == (0.99, 64, 5)
    views: Any = build(GSA).augmentation
    assert (views.flip, views.min_crop, views.gray_probability) == (False, 0.6, 0.2)
    assert views.jitter_probability == 0
    views = build(GSA, min_crop=0.3, problem={"flip": True}).augmentation
    assert (views.flip, views.min_crop) == (False, 0.3)


def test_a_memory_without_columns_is_refused() -> None:
    class Other:
        """A memory without slots."""

        def __init__(self) -> None:
            self.inner = Reservoir(4)

        def __getattr__(self, name: str) -> Any:
            if name == "inner":
                raise AttributeError(name)
            return getattr(self.inner, name)

        def __len__(self) -> int:
            return len(self.inner)

    with pytest.raises(SteradError, match="GSA keeps the task of each sample in a column of the"):
        build(GSA, parts={"memory": Other()})


@pytest.mark.slow
def test_gsa_with_a_teacher_and_many_options_passes_the_contract() -> None:
    check_method("gsa", GSAConfig(teacher="ema", review=True, memory_iterations=2, memory_batch=8))
