"""MKD: one whole step against a literal one, and what it refuses."""

import copy

import pytest
import torch
from torch.nn.functional import kl_div, log_softmax

from sterad.errors import SteradError
from sterad.methods.mkd import MKD
from sterad.streams import Batch
from tests.methods.scaffold import (
    build,
    count_images,
    literal_cross_entropy,
    open_stream,
    take_step,
    train,
)

STREAM = open_stream()


def test_one_step_equals_the_literal_algorithm() -> None:
    learner = build(MKD, memory_batch=4, optimizer="sgd", momentum=0.0, lr=0.01)
    train(learner, STREAM, 2)
    assert learner.teacher is not None
    student = copy.deepcopy(learner.network)
    teacher = copy.deepcopy(learner.teacher.network).train()
    batch, stored = STREAM.batch(2), copy.deepcopy(learner.memory).sample(4)
    both, rng = Batch.concatenate(stored, batch), copy.deepcopy(learner.rng["views"])
    view = learner.augmentation(both.x, rng)
    logits, target = student(view), teacher(view).detach()
    loss = literal_cross_entropy(logits, both.y.tolist())
    for output in (logits, student(both.x)):
        log_p, log_q = log_softmax(target / 4, dim=1), log_softmax(output / 4, dim=1)
        divergence = kl_div(log_q, log_p, log_target=True, reduction="none").sum(dim=1).mean()
        loss = loss + 5.5 / 2 * 16 * divergence
    loss.backward()
    assert torch.allclose(take_step(learner, batch), loss, rtol=1e-4)
    for weight, start in zip(learner.network.parameters(), student.parameters(), strict=True):
        assert start.grad is not None
        assert torch.allclose(weight, start - 0.01 * start.grad, atol=1e-5)
    weights = zip(
        learner.teacher.network.parameters(),
        teacher.parameters(),
        learner.network.parameters(),
        strict=True,
    )
    for average, old, new in weights:
        assert torch.allclose(average, 0.99 * old + 0.01 / 0.99 * new, atol=1e-6)


def test_a_step_passes_three_views_and_the_first_none() -> None:
    learner = build(MKD, memory_batch=4)
    assert learner.observe(STREAM.batch(0)) is None
    assert count_images(learner, STREAM.batch(1)) == 3 * 14


def test_the_settings_are_the_published_ones() -> None:
    config = MKD.Config()
    assert (config.optimizer, config.lr, config.weight_decay) == ("adam", 5e-4, 0.0)
    assert (config.teacher_momentum, config.teacher_weight) == (0.99, 5.5)
    assert (config.augmentation, config.predict_with) == ("full", "average")


def test_it_needs_a_teacher() -> None:
    with pytest.raises(SteradError, match="mkd distills from a teacher: leave teacher=ema"):
        build(MKD, teacher="none")
