"""A-GEM: whole steps against a slow, literal transcription of section 7.5."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.agem import AGEM, AGEMConfig, project
from sterad.streams import Batch, Blurry, Clear, Stream
from sterad.testing.method import same

EVERYTHING: dict[str, Any] = {"views": 2, "memory_iterations": 2, "clip": 1.0, "teacher": "ema"}


def stream(per_class: int = 10) -> Stream:
    data = Synthetic(classes=6, per_class=per_class, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def learner(
    classes: int | None = 6, memory: int = 100, announced: bool = True, **fields: Any
) -> AGEM:
    problem = Problem((1, 8, 8), classes, memory, width=2, seed=3, announced=announced)
    return build_learner(AGEM, AGEMConfig(**fields), problem)


def follow(made: AGEM, feed: Stream, stop: int) -> None:
    for step in range(1, stop + 1):
        made.observe(feed.batch(step - 1))
        if (boundary := feed.boundary(step)) is not None:
            made.boundary(boundary)


def flat_gradient(twin: AGEM, batch: Batch) -> tuple[Tensor, float]:
    """Return the gradient over all parameters, one vector, and the loss."""
    x = twin.augmentation(batch.x, twin.rng["views"])
    logits = twin.network.head(twin.network.encoder(x))
    rows = zip(logits, batch.y.tolist(), strict=True)
    loss = torch.stack([row.exp().sum().log() - row[label] for row, label in rows]).mean()
    twin.network.zero_grad()
    loss.backward()
    gradients = [p.grad for p in twin.network.parameters() if p.grad is not None]
    return torch.cat([gradient.reshape(-1) for gradient in gradients]), loss.item()


def literal_step(twin: AGEM, new: Batch, replays: bool) -> tuple[float, float]:
    """Take one step by hand; return the loss and g·r, 0 without a reference."""
    g, loss = flat_gradient(twin, new)
    product = 0.0
    if replays:
        r, _ = flat_gradient(twin, twin.memory.sample(twin.config.memory_batch))
        product = float(g @ r)
        if product < 0:
            g = g - (g @ r) / (r @ r) * r
            assert abs(float(g @ r)) < 1e-3 * abs(product)
    at = 0
    with torch.no_grad():
        for p in twin.network.parameters():
            along = g[at : at + p.numel()].view(p.shape)
            p.sub_(twin.config.lr * (along + twin.config.weight_decay * p))
            at += p.numel()
    twin.memory.update(new)
    return loss, product


def agree(made: AGEM, twin: AGEM) -> None:
    for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)
    for mine, literal in zip(made.network.buffers(), twin.network.buffers(), strict=True):
        torch.testing.assert_close(mine, literal, atol=1e-4, rtol=1e-3)


def test_steps_are_the_algorithm_of_the_paper() -> None:
    feed, products = stream(), []
    made = learner(memory_batch=12, lr=0.05, weight_decay=0.01)
    coming = [*map(feed.batch, range(len(feed))), feed.batch(0)]  # what came first is known
    for step, batch in enumerate(coming):
        twin = copy.deepcopy(made)
        loss = made.observe(batch)
        expected, product = literal_step(twin, batch, replays=step >= 3)
        products.append(product)
        assert loss is not None
        assert loss.item() == pytest.approx(expected, rel=1e-4)
        agree(made, twin)
        if (boundary := feed.boundary(step + 1)) is not None:
            made.boundary(boundary)
    assert products[:3] == [0, 0, 0], "the first task has three batches and no reference"
    assert min(products) < 0 < max(products), "both branches of the projection were taken"


def test_every_batch_of_a_blurry_stream_is_learned_and_remembered_once() -> None:
    data = Synthetic(classes=6, per_class=10, test_per_class=4).load()
    feed = Blurry(tasks=3, batch_size=5, scale=6.0).open(data, seed=0)
    made = learner(announced=False, detection_lag=2)
    for step in range(len(feed)):
        before = [p.detach().clone() for p in made.network.parameters()]
        made.observe(feed.batch(step))
        assert any(
            not torch.equal(p, old)
            for p, old in zip(made.network.parameters(), before, strict=True)
        )
    assert made.tasks is not None
    assert made.tasks.finished > 0
    kept = next(made.memory.everything())
    assert len(kept) == 60
    assert len({image.numpy().tobytes() for image in kept.x}) == 60


def test_images_of_a_step() -> None:
    feed, made = stream(per_class=30), learner()
    follow(made, feed, 9)
    assert made.images == 9 * 10, "the first task has no reference"
    before = made.images
    made.observe(feed.batch(9))
    assert made.images - before == 10 + 64


def test_projected_takes_away_what_opposes_and_nothing_else() -> None:
    draws = torch.Generator().manual_seed(0)
    reference = [torch.randn(3, 2, generator=draws), torch.randn(4, generator=draws)]
    for sign in (1, -1):
        gradient = [sign * r + 0.1 * torch.randn(r.shape, generator=draws) for r in reference]
        given = project(gradient, reference)
        along = sum(float((g * r).sum()) for g, r in zip(given, reference, strict=True))
        if sign > 0:
            assert all(torch.equal(a, b) for a, b in zip(given, gradient, strict=True))
        else:
            assert along == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("size", [0.0, 1e-30])
def test_a_memory_without_a_gradient_changes_nothing(size: float) -> None:
    gradient, reference = [torch.tensor([1.0, -2.0])], [torch.tensor([-size, 0.0])]
    assert torch.equal(project(gradient, reference)[0], gradient[0])


def test_released_settings_are_the_defaults() -> None:
    config = AGEMConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.1, 0.0)
    assert (config.weight_decay, config.augmentation, config.head) == (1e-4, "full", "mlp")
    assert (config.views, config.memory_batch) == (1, 64)
    assert (config.boundaries, config.detection_lag) == ("auto", 100)


@pytest.mark.parametrize("fields", [{}, EVERYTHING])
def test_the_head_grows_while_projecting_and_a_state_continues_to_the_bit(
    fields: dict[str, Any],
) -> None:
    fields = {"classes": None, "announced": False, "detection_lag": 0} | fields
    made, x = learner(**fields), stream().batch(0).x
    for top in (1, 3, 8):
        made.observe(Batch(x, torch.tensor([0, top] * 5)))
    assert made.network.outputs == 9
    assert made.tasks is not None
    assert made.tasks.finished == 2
    loaded = learner(**fields)
    loaded.load_state_dict(made.state_dict())
    for one in (made, loaded):
        one.observe(Batch(x, torch.tensor([0, 9] * 5)))
    assert same(made.state_dict(), loaded.state_dict())


def test_boundaries_that_nobody_announces_are_refused_in_words() -> None:
    assert METHODS["a-gem"] is AGEM
    with pytest.raises(SteradError, match="announces none: use detected or auto"):
        learner(announced=False, boundaries="announced")
    with pytest.raises(SteradError, match="detection_lag -1 is out of range: give"):
        learner(announced=False, detection_lag=-1)


def test_frozen_parameters_are_left_alone() -> None:
    made, s = learner(), stream()
    made.network.encoder.requires_grad_(False)
    made.engine.optimizer = made.parts.optimizer(made.engine.trainable, False)
    frozen = copy.deepcopy(made.network.encoder.state_dict())
    head = copy.deepcopy(made.network.head.state_dict())
    for step in range(len(s)):
        made.observe(s.batch(step))
        if (boundary := s.boundary(step + 1)) is not None:
            made.boundary(boundary)
    weights = dict(made.network.encoder.named_parameters())
    assert all(torch.equal(frozen[name], weight) for name, weight in weights.items())
    assert not same(head, made.network.head.state_dict())
