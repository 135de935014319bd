"""The loss of DVC against its formula in plain Python."""

import math

import pytest
import torch

from sterad.losses.dual_view import dual_view_loss, marginal_entropy


def softmax(row: list[float]) -> list[float]:
    powers = [math.exp(value) for value in row]
    return [power / sum(powers) for power in powers]


def negative_entropy(rows: list[list[float]]) -> float:
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    mean = [max(value / sum(mean), 2.220446049250313e-16) for value in mean]
    return math.fsum(value * math.log(value) for value in mean)


def test_against_the_formula() -> None:
    generator = torch.Generator().manual_seed(0)
    z, w, q = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64)
    labels, weight = [0, 3, 3, 1, 2], 4.0
    P, W, Q = ([softmax(row) for row in logits.tolist()] for logits in (z, w, q))
    cross = sum(-math.log(p[y]) for rows in (P, W) for p, y in zip(rows, labels, strict=True)) / 10
    entropies = negative_entropy(P) + negative_entropy(W) + negative_entropy(Q)
    gaps = [
        abs(a - b)
        for rows in (P, W)
        for view, joint in zip(rows, Q, strict=True)
        for a, b in zip(view, joint, strict=True)
    ]
    expected = cross + entropies / 3 + weight * sum(gaps) / len(gaps)
    loss = dual_view_loss(z, w, q, torch.tensor(labels), weight)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_loss_and_gradient_are_finite_for_a_class_of_probability_zero() -> None:
    z = torch.tensor([[0.0, -400.0, 0.0]], requires_grad=True)
    loss = dual_view_loss(z, z, z, torch.tensor([0]), 4.0)
    loss.backward()
    assert torch.isfinite(loss)
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())


def test_gradient_descent_increases_the_marginal_entropy() -> None:
    z = torch.tensor([[2.0, 0.0, 0.0]] * 4, requires_grad=True)
    before = marginal_entropy(z.softmax(dim=1))
    (gradient,) = torch.autograd.grad(-before, z)
    assert marginal_entropy((z - gradient).softmax(dim=1)) > before
