"""The masses of GSA against the gradients of torch, and its weights against the formula."""

import math

import torch
import torch.nn.functional as F

from sterad.losses.gradient_balance import balance_weights, gradient_masses


def test_masses_are_the_gradients_of_a_cross_entropy() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(12, 5, generator=rng).requires_grad_()
    targets = torch.randint(5, (12,), generator=rng)
    masses = gradient_masses(logits, targets)
    F.cross_entropy(logits, targets, reduction="sum").backward()
    assert logits.grad is not None
    assert torch.allclose(-logits.grad.clamp(max=0).sum(0), masses[0], atol=1e-5)
    assert torch.allclose(logits.grad.clamp(min=0).sum(0), masses[1], atol=1e-5)
    assert not masses.requires_grad


def test_weights_are_the_formula_and_stay_between_their_limits() -> None:
    positive, negative = torch.tensor([3.0, 1.0, 0.0, 1e6]), torch.tensor([1.0, 4.0, 2.0, 1e-9])
    found = balance_weights(torch.stack([positive, negative]))
    expected = [2 / (1 + math.exp(1 - p / n)) for p, n in ((3, 1), (1, 4), (0, 2), (1e6, 1))]
    assert torch.allclose(found, torch.tensor(expected))
    assert 0.53 < float(found.min()) < float(found.max()) <= 2
    assert balance_weights(torch.zeros(2, 3)).tolist() == [1.0, 1.0, 1.0]
