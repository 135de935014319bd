"""Flattening: one whole step against a literal one, what it restores, its cost, refusals."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import METHODS, Replay
from sterad.methods.base.learner import FORWARD_COST
from sterad.streams import Batch
from sterad.testing import check_method
from tests.methods.scaffold import build, count_images, open_stream, train

STREAM = open_stream(classes=4, batch_size=5)
PLAIN: dict[str, Any] = {"augmentation": "none", "memory_batch": 8}
SGD: dict[str, Any] = {"weight_decay": 0.0, "momentum": 0.0}
FLAT: dict[str, Any] = {"flatten_weight": 3.0, "flatten_noise": 0.1, "flatten_radius": 0.2}


def trained(steps: int, method: str = "er", **fields: Any) -> Replay:
    """Return a learner of three classes or more after some steps."""
    learner = build(method, 4, 12, {"seed": 1}, **(PLAIN | fields))
    train(learner, STREAM, steps)
    return learner


def mean_divergence(p: Tensor, logits: Tensor, rows: list[int]) -> Tensor:
    """Return the mean of KL(p || softmax(logits)) over some rows, class by class."""
    q = logits.softmax(dim=1)
    total = torch.zeros(())
    for row in rows:
        for k in range(p.shape[1]):
            total = total + p[row, k] * (p[row, k].log() - q[row, k].log())
    return total / len(rows)


def test_a_step_equals_the_literal_algorithm() -> None:
    learner = trained(0, **SGD, **FLAT)
    flattening, learner.additions = learner.additions, []
    train(learner, STREAM, 5)  # without it: a step at these perturbations amplifies rounding
    learner.additions = flattening
    network, noise = copy.deepcopy(learner.network), torch.Generator()
    noise.set_state(learner.rng["flattening"].get_state())
    batch, stored = STREAM.batch(5), copy.deepcopy(learner.memory).sample(8)
    both = Batch.concatenate(stored, batch)
    seen = torch.tensor(sorted({*learner.seen.tolist(), *batch.y.tolist()}))
    weights = list(network.parameters())
    before = [one.detach().clone() for one in weights]
    F.cross_entropy(network(both.x), both.y).backward()
    plain = [one.grad.clone() for one in weights if one.grad is not None]
    buffers = {name: one.clone() for name, one in network.named_buffers()}

    with torch.no_grad():
        p = network(stored.x)[:, seen].softmax(dim=1)
    rows = [i for i in range(8) if int(seen[p[i].argmax()]) == int(stored.y[i])]
    assert 0 < len(rows) < 8
    steps = []
    for one in before:
        spread = 0.1 * one.square().sum().sqrt() / one.numel() ** 0.5
        steps.append(torch.randn(one.shape, generator=noise) * spread)
    for one, start, step in zip(weights, before, steps, strict=True):
        one.data = start + step
    ascent = torch.autograd.grad(mean_divergence(p, network(stored.x)[:, seen], rows), weights)
    for one, start, step, v in zip(weights, before, steps, ascent, strict=True):
        one.data = start + step + 0.2 * start.norm() / v.norm().clamp(min=1e-12) * v
    loss = 3.0 * mean_divergence(p, network(stored.x)[:, seen], rows)
    added = torch.autograd.grad(loss, weights)

    assert count_images(learner, batch) == 13 + 3 * 8
    assert max(float(one.abs().max()) for one in added) > 1e-3
    for weight, start, own, more in zip(
        learner.network.parameters(), before, plain, added, strict=True
    ):
        change = 0.01 * (own + more)  # float32: the ascent divides by the norm of a small gradient
        error = float((weight.detach() - (start - change)).abs().max())
        assert error < 1e-5 + 1e-3 * float(change.abs().max())
    for name, one in learner.network.named_buffers():
        assert torch.allclose(one, buffers[name], atol=1e-6), name


def test_weights_are_restored_to_the_bit() -> None:
    learner = trained(4, lr=1e-12, **SGD, flatten_weight=1.0)
    before = [one.detach().clone() for one in learner.network.parameters()]
    [flattening] = learner.additions
    flattening.loss(learner, learner.memory.sample(8), STREAM.batch(0))
    buffers = [one.clone() for one in learner.network.buffers()]
    flattening.add_gradients(learner)
    for one, saved in zip(learner.network.parameters(), before, strict=True):
        assert torch.equal(one, saved)
        assert one.grad is not None
    for buffer, kept in zip(learner.network.buffers(), buffers, strict=True):
        assert torch.equal(buffer, kept)


def test_without_a_correct_image_nothing_is_added() -> None:
    learner = trained(4, **SGD, flatten_weight=1.0)
    [flattening] = learner.additions
    stored = learner.memory.sample(4)
    wrong = torch.tensor([one for one in learner.seen.tolist()])
    with torch.no_grad():
        network = copy.deepcopy(learner.network)
        found = learner.seen[network(stored.x)[:, learner.seen].argmax(1)]
    labels = torch.stack([wrong[wrong != one][0] for one in found])
    flattening.loss(learner, Batch(stored.x, labels), STREAM.batch(0))
    flattening.add_gradients(learner)
    for one in learner.network.parameters():
        assert one.grad is not None
        assert not one.grad.any()


def test_the_declared_cost_is_that_of_the_passes() -> None:
    cls = METHODS["er"]
    step = cls.cost(cls.Config(flatten_weight=1.0), 10, memory=100, samples=1000).step
    assert step == pytest.approx(74 + (2 + FORWARD_COST) * 64)


@pytest.mark.parametrize(
    ("method", "fields", "message"),
    [
        ("agem", {}, "AGEM computes its gradients in its own way"),
        ("dvc", {}, "DVC computes its gradients in its own way"),
        ("scr", {}, "needs posteriors of the classes"),
        ("finetune", {}, "Finetune replays none"),
        ("gdumb", {}, "a method that trains from scratch takes none"),
        ("agd-fd", {"directions": "moving"}, "flattening and nearest-direction"),
    ],
)
def test_methods_without_what_it_needs_are_refused(
    method: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(SteradError, match=message):
        build(method, flatten_weight=1.0, **fields)


def test_its_fields_have_no_effect_when_it_is_off() -> None:
    with pytest.raises(SteradError, match=r"flatten_noise=0\.5 has no effect without"):
        build("er", flatten_noise=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["er", "agd-fd"])
def test_flattening_keeps_the_contract(method: str) -> None:
    check_method(method, METHODS[method].Config(flatten_weight=1.0, teacher="ema"))
