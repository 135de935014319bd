"""DER++: one whole step against a literal transcription of the algorithm."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import METHODS
from sterad.methods.derpp import DERpp, DERppConfig
from sterad.streams import Batch, Stream
from tests.methods.scaffold import (
    ALL_OPTIONS,
    assert_networks_close,
    assert_resumes,
    build,
    count_images,
    draw_views,
    literal_cross_entropy,
    open_stream,
    take_step,
    train,
)

StoredLogits = dict[bytes, list[float]]
"""Logits of every image so far, by the bytes of the image."""


def long_stream() -> Stream:
    return open_stream(per_class=30)


def logits_of(learner: DERpp, x: Tensor) -> tuple[Tensor, int]:
    """Return logits of all views from one pass, and the number of views."""
    views = draw_views(learner, x)
    return learner.network.head(learner.network.encoder(torch.cat(views))), len(views)


def literal_distillation(logits: Tensor, stored: list[list[float]]) -> Tensor:
    """Return the mean square of the differences over the stored logits, entry by entry."""
    differences = [
        (row[c] - value) ** 2
        for row, old in zip(logits, stored, strict=True)
        for c, value in enumerate(old)
    ]
    return torch.stack(differences).mean()


def literal_step(learner: DERpp, new: Batch, stored: StoredLogits) -> float:
    """Take one step, add the logits of the new images to `stored`, and return the loss."""
    config, size = learner.config, learner.config.memory_batch
    logits, views = logits_of(learner, new.x)
    total = literal_cross_entropy(logits, new.y.tolist() * views)
    if len(learner.memory):
        first = learner.memory.sample(size)
        old = [stored[image.numpy().tobytes()] for image in first.x]
        distilled = literal_distillation(logits_of(learner, first.x)[0], old * views)
        total = total + config.alpha * distilled
        second = learner.memory.sample(size)
        replayed = logits_of(learner, second.x)[0]
        total = total + config.beta * literal_cross_entropy(replayed, second.y.tolist() * views)
    before = logits.detach().clone()[: len(new)]
    learner.engine.optimizer.zero_grad()
    total.backward()
    learner.engine.optimizer.step()
    stored |= {x.numpy().tobytes(): row for x, row in zip(new.x, before.tolist(), strict=True)}
    return total.item()


@pytest.mark.parametrize("views", [0, 1, 3])
def test_steps_equal_the_literal_algorithm(views: int) -> None:
    stream = long_stream()
    learner = build(DERpp, memory_batch=4, views=views, alpha=0.7, beta=0.4)
    stored = StoredLogits()
    for step in range(5):  # the memory is full after the third
        reference = copy.deepcopy(learner)
        loss = take_step(learner, stream.batch(step))
        expected = literal_step(reference, stream.batch(step), stored)
        assert loss.item() == pytest.approx(expected, rel=1e-4)
        assert_networks_close(learner.network, reference.network, 1e-4, buffer_atol=1e-4)


def test_raw_images_are_stored_with_logits_of_the_first_view_before_the_step() -> None:
    batch, learner = long_stream().batch(0), build(DERpp, views=2)
    reference = copy.deepcopy(learner)
    learner.observe(batch)
    stored = next(learner.memory.everything())
    views = draw_views(reference, batch.x)
    logits = reference.network(torch.cat(views))[:10]
    assert torch.equal(stored.x, batch.x)
    torch.testing.assert_close(stored.extra["logits"], logits.detach())
    assert stored.extra["outputs"].tolist() == [6] * 10
    assert not torch.allclose(learner.network(views[0]), logits, atol=1e-3), "the step changed them"


def test_logits_stored_before_the_head_grew_are_compared_over_their_own_width() -> None:
    learner = build(DERpp, classes=None, memory_batch=20, memory=40, alpha=0.9)
    stream, stored = long_stream(), StoredLogits()
    for step, labels in enumerate(([0, 1], [1, 3], [5, 0], [5, 3], [0, 9])):
        batch = Batch(stream.batch(step).x, torch.tensor(labels * 5))
        reference = copy.deepcopy(learner)
        reference.see(batch)
        loss = take_step(learner, batch)
        assert loss.item() == pytest.approx(literal_step(reference, batch, stored), rel=1e-4)
    assert {len(row) for row in stored.values()} == {2, 4, 6, 10}
    assert learner.network.outputs == 10


@pytest.mark.parametrize("options", [{}, ALL_OPTIONS])
def test_a_widened_learner_resumes_bit_for_bit(options: dict[str, Any]) -> None:
    learner, fresh = (build(DERpp, classes=None, **options) for _ in range(2))
    stream = long_stream()
    batches = [
        Batch(stream.batch(step).x, torch.tensor([0, label] * 5))
        for step, label in enumerate((1, 4, 4, 7))
    ]
    for batch in batches[:2]:
        learner.observe(batch)
    assert_resumes(learner, fresh, *batches[2:])


def test_default_settings_are_those_of_the_released_code() -> None:
    config = DERppConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.03, 0.0)
    assert (config.weight_decay, config.augmentation, config.head) == (0.0, "partial", "linear")
    assert (config.alpha, config.beta, config.memory_batch, config.views) == (0.2, 1.0, 64, 1)


def test_images_per_step() -> None:
    stream, learner = long_stream(), build(DERpp, memory=100)
    assert count_images(learner, stream.batch(0)) == 10
    train(learner, stream, start=1, stop=8)
    assert count_images(learner, stream.batch(8)) == 10 + 64 + 64


def test_alias() -> None:
    assert METHODS["der++"] is DERpp


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("weight", [-0.1, float("nan")])
def test_invalid_weights_raise(name: str, weight: float) -> None:
    message = rf"^{name} {weight} is out of range: give a number in \[0, 1e\+06\]$"
    fields: dict[str, Any] = {name: weight}
    with pytest.raises(SteradError, match=message):
        build(DERpp, **fields)
