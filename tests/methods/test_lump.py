"""LUMP: one whole step against a literal transcription of the algorithm."""

import copy
from typing import Any

import pytest
import torch

from sterad.errors import SteradError
from sterad.methods.lump import LUMP, LUMPConfig
from sterad.streams import Batch
from tests.methods.scaffold import build, open_stream, take_step, train


def draw_weight(learner: LUMP) -> float:
    """Return λ, the weight of the new image, as the next mixture draws it."""
    return learner.mix(torch.zeros(1, 1), torch.ones(1, 1)).item()


def test_one_step_equals_the_literal_algorithm() -> None:
    stream, learner = open_stream(per_class=20), build(LUMP)
    assert learner.observe(stream.batch(0)) is None, "no step while the memory is empty"
    learner.observe(stream.batch(1))
    learner.engine.optimizer.state.clear()  # without momentum a step is one gradient
    reference, images = copy.deepcopy(learner), learner.images
    loss = take_step(learner, stream.batch(2))

    old, new, weight = reference.memory.sample(10), stream.batch(2), draw_weight(reference)
    mixed = torch.stack([weight * b + (1 - weight) * a for a, b in zip(old.x, new.x, strict=True)])
    views = reference.augmentation(torch.cat([mixed, mixed]), reference.rng["views"]).chunk(2)
    network = reference.network
    rows = [row for view in views for row in network.head(network.encoder(view))]
    z = [row / row.norm() for row in rows]
    expected = torch.tensor(0.0)
    for i in range(20):
        others = torch.stack([(z[i] @ z[a] / 0.07).exp() for a in range(20) if a != i])
        other_view = z[(i + 10) % 20]
        expected = expected - ((z[i] @ other_view / 0.07).exp() / others.sum()).log() / 20
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    pairs = zip(learner.network.parameters(), reference.network.parameters(), strict=True)
    for parameter, start in pairs:
        assert start.grad is not None
        assert torch.allclose(parameter, start - 0.001 * (start.grad + 1e-4 * start), atol=1e-6)
    assert learner.images - images == 20
    assert len(learner.memory) == 30


def test_labels_do_not_change_the_weights() -> None:
    stream, first, second = open_stream(per_class=20), build(LUMP), build(LUMP)
    for step in range(3):
        batch = stream.batch(step)
        first.observe(batch)
        second.observe(Batch(batch.x, batch.y.flip(0)))
    assert all(map(torch.equal, first.network.parameters(), second.network.parameters()))


def test_mixture_weights_follow_the_symmetric_beta_distribution() -> None:
    learner = build(LUMP)
    weights = torch.tensor([draw_weight(learner) for _ in range(4000)])
    assert weights.min() >= 0
    assert weights.max() <= 1
    assert weights.mean().item() == pytest.approx(0.5, abs=0.02)
    assert weights.var().item() == pytest.approx(1 / (4 * (2 * 0.4 + 1)), abs=0.005)


def test_few_stored_images_are_mixed_repeatedly() -> None:
    learner, old = build(LUMP, memory=3), torch.tensor([[1.0], [2.0], [3.0]])
    mixed = learner.mix(old, torch.zeros(7, 1)).squeeze(1)
    assert torch.allclose(mixed / mixed[0], torch.tensor([1.0, 2, 3, 1, 2, 3, 1]))
    train(learner, open_stream(per_class=20), 3)
    assert learner.images == 2 * 20


def test_default_settings() -> None:
    config = LUMPConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.001, 0.9)
    assert (config.alpha, config.views, config.temperature) == (0.4, 2, 0.07)
    assert (config.projection, config.head, config.classifier) == (128, "mlp", "nearest-mean")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"alpha": 0.0}, r"alpha 0.0 is out of range: give a number in \(0, 1e\+06\]$"),
        ({"alpha": float("nan")}, r"alpha nan is out of range: give a number in \(0, 1e\+06\]$"),
        ({"views": 1}, "views 1 is out of range: give an integer from 2 to 1,000$"),
        ({"temperature": -1.0}, r"temperature -1.0 is out of range: give a number in \(0, 1e"),
        ({"classifier": "head"}, "unknown classifier 'head'"),
    ],
)
def test_invalid_fields_raise(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build(LUMP, **fields)


def test_inputs_without_views_raise() -> None:
    with pytest.raises(SteradError, match=r"lump compares random views, .*\(6,\) have none"):
        build(LUMP, problem={"input_shape": (6,), "encoder": "mlp"})
