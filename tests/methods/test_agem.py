"""A-GEM: whole steps against a literal transcription of the algorithm."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import METHODS
from sterad.methods.agem import AGEM, AGEMConfig, project
from sterad.streams import Batch, Blurry
from sterad.testing.method import same
from tests.methods.scaffold import (
    ALL_OPTIONS,
    assert_resumes,
    build,
    count_images,
    literal_cross_entropy,
    open_stream,
    take_step,
    train,
)


def build_agem(announced: bool = True, classes: int | None = 6, **fields: Any) -> AGEM:
    return build(AGEM, classes, memory=100, problem={"announced": announced}, **fields)


def flat_gradient(learner: AGEM, batch: Batch) -> tuple[Tensor, float]:
    """Return the gradient of all parameters as one vector, and the loss."""
    x = learner.augmentation(batch.x, learner.rng["views"])
    logits = learner.network.head(learner.network.encoder(x))
    loss = literal_cross_entropy(logits, batch.y.tolist())
    learner.network.zero_grad()
    loss.backward()
    gradients = [p.grad for p in learner.network.parameters() if p.grad is not None]
    return torch.cat([gradient.reshape(-1) for gradient in gradients]), loss.item()


def literal_step(learner: AGEM, new: Batch, replays: bool) -> tuple[float, float]:
    """Take one step; return the loss and g·r, which is 0 without a reference gradient."""
    g, loss = flat_gradient(learner, new)
    product = 0.0
    if replays:
        r, _ = flat_gradient(learner, learner.memory.sample(learner.config.memory_batch))
        product = float(g @ r)
        if product < 0:
            g = g - (g @ r) / (r @ r) * r
            assert abs(float(g @ r)) < 1e-3 * abs(product)
    offset = 0
    with torch.no_grad():
        for p in learner.network.parameters():
            gradient = g[offset : offset + p.numel()].view(p.shape)
            p.sub_(learner.config.lr * (gradient + learner.config.weight_decay * p))
            offset += p.numel()
    learner.memory.update(new)
    return loss, product


def test_steps_equal_the_literal_algorithm() -> None:
    stream, products = open_stream(), []
    learner = build_agem(memory_batch=12, lr=0.05, weight_decay=0.01)
    # The last batch repeats the first: its gradient agrees with that of the memory.
    batches = [*map(stream.batch, range(len(stream))), stream.batch(0)]
    for step, batch in enumerate(batches):
        reference = copy.deepcopy(learner)
        loss = take_step(learner, batch)
        expected, product = literal_step(reference, batch, replays=step >= 3)
        products.append(product)
        assert loss.item() == pytest.approx(expected, rel=1e-4)
        state, expected_state = learner.network.state_dict(), reference.network.state_dict()
        torch.testing.assert_close(state, expected_state, atol=1e-4, rtol=1e-3)
        if (boundary := stream.boundary(step + 1)) is not None:
            learner.boundary(boundary)
    assert products[:3] == [0, 0, 0], "the first task has three batches and no reference"
    assert min(products) < 0 < max(products), "both branches of the projection were taken"


def test_each_batch_of_a_blurry_stream_is_learned_and_stored_once() -> None:
    data = Synthetic(classes=6, per_class=10, test_per_class=4).load()
    stream = Blurry(tasks=3, batch_size=5, scale=6.0).open(data, seed=0)
    learner = build_agem(announced=False, detection_lag=2)
    for step in range(len(stream)):
        before = copy.deepcopy(list(learner.network.parameters()))
        learner.observe(stream.batch(step))
        assert not all(map(torch.equal, before, learner.network.parameters()))
    assert learner.tasks is not None
    assert learner.tasks.finished > 0
    stored = next(learner.memory.everything())
    assert len(stored) == 60
    assert len({image.numpy().tobytes() for image in stored.x}) == 60


def test_images_per_step() -> None:
    stream, learner = open_stream(per_class=30), build_agem()
    train(learner, stream, 9)
    assert learner.images == 9 * 10, "the first task has no reference gradient"
    assert count_images(learner, stream.batch(9)) == 10 + 64


def test_project_removes_only_a_component_against_the_reference() -> None:
    rng = torch.Generator().manual_seed(0)
    reference = [torch.randn(3, 2, generator=rng), torch.randn(4, generator=rng)]
    for sign in (1, -1):
        gradient = [sign * r + 0.1 * torch.randn(r.shape, generator=rng) for r in reference]
        projected = project(gradient, reference)
        product = sum(float((g * r).sum()) for g, r in zip(projected, reference, strict=True))
        if sign > 0:
            assert all(map(torch.equal, projected, gradient))
        else:
            assert product == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("size", [0.0, 1e-30])
def test_a_zero_reference_gradient_changes_nothing(size: float) -> None:
    gradient, reference = [torch.tensor([1.0, -2.0])], [torch.tensor([-size, 0.0])]
    assert torch.equal(project(gradient, reference)[0], gradient[0])


def test_default_settings_are_those_of_the_released_code() -> None:
    config = AGEMConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.1, 0.0)
    assert (config.weight_decay, config.augmentation, config.head) == (1e-4, "full", "mlp")
    assert (config.views, config.memory_batch) == (1, 64)
    assert (config.boundaries, config.detection_lag) == ("auto", 100)


@pytest.mark.parametrize("options", [{}, ALL_OPTIONS])
def test_a_widened_learner_resumes_bit_for_bit(options: dict[str, Any]) -> None:
    fields = {"announced": False, "classes": None, "detection_lag": 0} | options
    learner, x = build_agem(**fields), open_stream().batch(0).x
    for label in (1, 3, 8):
        learner.observe(Batch(x, torch.tensor([0, label] * 5)))
    assert learner.network.outputs == 9
    assert learner.tasks is not None
    assert learner.tasks.finished == 2
    assert_resumes(learner, build_agem(**fields), Batch(x, torch.tensor([0, 9] * 5)))


def test_invalid_boundary_fields_raise() -> None:
    with pytest.raises(SteradError, match="announces none: use detected or auto"):
        build_agem(announced=False, boundaries="announced")
    with pytest.raises(SteradError, match="detection_lag -1 is out of range: give"):
        build_agem(announced=False, detection_lag=-1)


def test_alias() -> None:
    assert METHODS["a-gem"] is AGEM


def test_frozen_parameters_stay_unchanged() -> None:
    learner = build_agem()
    learner.network.encoder.requires_grad_(False)
    learner.engine.optimizer = learner.parts.optimizer(learner.engine.trainable, False)
    encoder = copy.deepcopy(dict(learner.network.encoder.named_parameters()))
    head = copy.deepcopy(learner.network.head.state_dict())
    train(learner, open_stream())
    assert same(encoder, dict(learner.network.encoder.named_parameters()))
    assert not same(head, learner.network.head.state_dict())
