"""ER-ACE: one whole step against a literal transcription of the algorithm."""

import copy

import pytest
import torch
from torch import Tensor

from sterad.methods import METHODS
from sterad.methods.er_ace import ERACE, ERACEConfig
from sterad.streams import Batch, Stream
from tests.methods.scaffold import (
    ALL_OPTIONS,
    assert_networks_close,
    assert_resumes,
    build,
    count_images,
    draw_views,
    open_stream,
    take_step,
    train,
)


def many_classes() -> Stream:
    return open_stream(classes=16, per_class=20, tasks=4)


def masked_cross_entropy(logits: Tensor, labels: list[int], classes: set[int]) -> Tensor:
    """Return the mean cross-entropy among `classes`, element by element."""
    total = torch.tensor(0.0)
    for row, label in zip(logits, labels, strict=True):
        masked = [value if c in classes else value * 0 - 1e9 for c, value in enumerate(row)]
        total = total + torch.stack(masked).exp().sum().log() - row[label]
    return total / len(labels)


def literal_loss(learner: ERACE, stored: Batch, new: Batch, seen: set[int]) -> Tensor:
    """Mask the old classes for the stream batch; add the memory batch from its own pass."""
    labels, outputs = new.y.tolist(), set(range(learner.network.outputs))
    views = draw_views(learner, new.x)
    logits = learner.network(torch.cat(views))
    total = masked_cross_entropy(logits, labels * len(views), set(labels) | (outputs - seen))
    if len(stored):
        views = draw_views(learner, stored.x)
        logits = learner.network(torch.cat(views))
        total = total + masked_cross_entropy(logits, stored.y.tolist() * len(views), outputs)
    return total


@pytest.mark.parametrize("views", [1, 2])
def test_steps_equal_the_literal_algorithm(views: int) -> None:
    stream, learner = many_classes(), build(ERACE, 16, memory_batch=4, views=views, lr=0.05)
    seen = set[int]()
    for step in range(10):  # the second task starts at step 8
        reference, new = copy.deepcopy(learner), stream.batch(step)
        loss = take_step(learner, new)
        seen |= set(new.y.tolist())
        expected = literal_loss(reference, reference.memory.sample(4), new, seen)
        reference.engine.optimizer.zero_grad()
        expected.backward()
        reference.engine.optimizer.step()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
        assert_networks_close(learner.network, reference.network, 1e-4)
    assert len(seen) > 4
    assert max(seen) > 9, "labels beyond the number of images of a batch occur"


def test_the_stream_batch_does_not_change_the_rows_of_old_classes() -> None:
    learner, x = build(ERACE, 20, momentum=0.0, lr=0.1), many_classes().batch(0).x
    learner.seen = torch.tensor([3, 12])
    head = learner.network.head.get_parameter("weight")
    before = head.detach().clone()
    learner.observe(Batch(x, torch.tensor([5, 15] * 5)))
    unchanged = (head == before).all(dim=1).nonzero().squeeze(1)
    assert unchanged.tolist() == [3, 12]


def test_default_settings_are_those_of_the_released_code() -> None:
    config = ERACEConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.001, 0.9)
    assert (config.weight_decay, config.augmentation, config.head) == (0.0, "partial", "linear")
    assert (config.views, config.memory_batch, config.classifier) == (1, 64, "head")


def test_images_per_step() -> None:
    stream, learner = many_classes(), build(ERACE, 16, memory=100)
    assert count_images(learner, stream.batch(0)) == 10
    train(learner, stream, start=1, stop=8)
    assert count_images(learner, stream.batch(8)) == 10 + 64


def test_a_batch_with_more_images_than_outputs_while_the_head_grows() -> None:
    learner, x = build(ERACE, classes=None), torch.cat([many_classes().batch(0).x] * 3)
    for label in (1, 4):
        learner.observe(Batch(x, torch.tensor([label - 1, label, 0] * 10)))
    assert learner.network.outputs == 5
    reference, last = copy.deepcopy(learner), Batch(x, torch.tensor([7, 0, 7] * 10))
    loss = take_step(learner, last)
    reference.widen(8)
    expected = literal_loss(reference, reference.memory.sample(64), last, {0, 1, 3, 4, 7})
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)


def test_a_widened_learner_resumes_bit_for_bit() -> None:
    learner, fresh = (build(ERACE, classes=None, **ALL_OPTIONS) for _ in range(2))
    x = many_classes().batch(0).x
    for label in (1, 4):
        learner.observe(Batch(x, torch.tensor([0, label] * 5)))
    assert_resumes(learner, fresh, Batch(x, torch.tensor([7, 0] * 5)))


def test_aliases() -> None:
    assert METHODS["ER_ACE"] is METHODS["erace"] is ERACE
