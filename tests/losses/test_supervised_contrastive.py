"""The supervised contrastive loss against its definition in plain Python, and edge cases."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.losses.supervised_contrastive import supervised_contrastive_loss


def rows(n: int, d: int = 5, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(n, d, generator=rng, dtype=torch.float64))


def by_definition(z: Tensor, labels: list[int], temperature: float) -> float:
    losses = []
    for i, anchor in enumerate(z):
        others = [a for a in range(len(z)) if a != i]
        total = sum(math.exp(float(anchor @ z[a]) / temperature) for a in others)
        same = [a for a in others if labels[a] == labels[i]]
        if same:
            probabilities = [math.exp(float(anchor @ z[p]) / temperature) / total for p in same]
            losses.append(-sum(math.log(p) for p in probabilities) / len(same))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("temperature", [0.07, 1.0])
@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 1, 2], [3, 3, 3, 3, 8, 8], [0, 0, 1, 2, 2, 9]])
def test_against_the_definition(labels: list[int], temperature: float) -> None:
    z = rows(6)
    loss = supervised_contrastive_loss(z, torch.tensor(labels), temperature)
    assert loss.item() == pytest.approx(by_definition(z, labels, temperature), rel=1e-12)


def test_with_one_label_per_image_it_equals_simclr() -> None:
    z = rows(8)
    loss = supervised_contrastive_loss(z, torch.arange(4).repeat(2), 0.5)
    logits = (z @ z.T / 0.5).fill_diagonal_(float("-inf"))
    other_view = torch.arange(8).roll(4)
    assert loss.item() == pytest.approx(
        torch.nn.functional.cross_entropy(logits, other_view).item(), rel=1e-12
    )


@pytest.mark.parametrize("n", [1, 4])
def test_rows_without_positives_give_zero_loss_and_gradient(n: int) -> None:
    z = rows(n).float().requires_grad_()
    loss = supervised_contrastive_loss(z, torch.arange(n))
    loss.backward()
    assert loss.item() == 0
    assert z.grad is not None
    assert torch.equal(z.grad, torch.zeros_like(z))


def test_small_temperature_does_not_overflow() -> None:
    z = rows(6).float().requires_grad_()
    loss = supervised_contrastive_loss(z, torch.tensor([0, 0, 1, 1, 2, 2]), 1e-4)
    loss.backward()
    assert z.grad is not None
    assert bool(loss.isfinite())
    assert bool(z.grad.isfinite().all())


def test_gradient_descent_separates_the_classes() -> None:
    free, labels = rows(12, 3).requires_grad_(), torch.arange(3).repeat(4)
    first = last = supervised_contrastive_loss(normalize(free), labels, 0.5)
    for _ in range(200):
        (gradient,) = torch.autograd.grad(last, free)
        free = (free - 0.5 * gradient).detach().requires_grad_()
        last = supervised_contrastive_loss(normalize(free), labels, 0.5)
    z = normalize(free).detach()
    cosines = z @ z.T
    same = labels[:, None] == labels
    assert last < first
    assert cosines[same].min() > 0.9 > 0 > cosines[~same].max()
