"""The losses of OCM against their definitions in plain Python."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from sterad.losses.mutual_information import alike_loss, paired_loss

T = 0.07


def similarities(n: int, seed: int = 0) -> Tensor:
    u = torch.randn(n, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    u = torch.nn.functional.normalize(u)
    return u @ u.T


def by_definition(S: Tensor, labels: list[int], paired: bool) -> float:
    n, epsilon = len(labels), 1e-8
    weighted = pairs = 0.0
    for i in range(n):
        row = [math.exp((float(S[i, j]) - float(S[i].max())) / T) for j in range(n)]
        if paired:
            row[i] = 0.0
        costs = [-math.log(value / (sum(row) + epsilon) + epsilon) for value in row]
        count = sum(label == labels[i] for label in labels) + epsilon
        weighted += sum(c / count for c, y in zip(costs, labels, strict=True) if y == labels[i])
        pairs += costs[(i + n // 2) % n]
    return pairs / n + 2 * weighted / n if paired else weighted / n


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_against_the_definition(scale: float) -> None:
    S, labels = scale * similarities(8), [0, 1, 1, 2, 0, 1, 1, 2]
    alike, paired = (loss(S, torch.tensor(labels), T).item() for loss in (alike_loss, paired_loss))
    assert alike == pytest.approx(by_definition(S, labels, False), rel=1e-6)
    # The definition subtracts the diagonal as the largest of each row, which costs some digits.
    assert paired == pytest.approx(by_definition(S, labels, True), rel=1e-2)


def test_paired_loss_against_the_definition_with_a_small_diagonal() -> None:
    S, labels = similarities(8), [0, 1, 1, 2, 0, 1, 1, 2]
    S.fill_diagonal_(-1.0)
    loss = paired_loss(S, torch.tensor(labels), T).item()
    assert loss == pytest.approx(by_definition(S, labels, True), rel=1e-6)


def test_paired_loss_does_not_depend_on_the_diagonal() -> None:
    S, labels = similarities(6).requires_grad_(), torch.tensor([0, 1, 2, 0, 1, 2])
    loss = paired_loss(S, labels, T)
    (gradient,) = torch.autograd.grad(loss, S)
    assert torch.equal(gradient.diagonal(), torch.zeros(6, dtype=torch.float64))
    assert paired_loss(S + 3 * torch.eye(6), labels, T).item() == pytest.approx(loss.item())


@pytest.mark.parametrize("loss", [alike_loss, paired_loss])
def test_gradient_descent_brings_rows_of_a_label_together(
    loss: Callable[[Tensor, Tensor, float], Tensor],
) -> None:
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    u = torch.randn(6, 4, generator=torch.Generator().manual_seed(2)).requires_grad_()
    for _ in range(200):
        z = torch.nn.functional.normalize(u)
        (gradient,) = torch.autograd.grad(loss(z @ z.T, labels, 0.5), u)
        u = (u - 0.5 * gradient).detach().requires_grad_()
    z = torch.nn.functional.normalize(u)
    same = labels[:, None] == labels
    assert (z @ z.T)[same].min() > (z @ z.T)[~same].max()
