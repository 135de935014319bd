"""The angular-Gaussian loss from its alternating series, on one-hot products in float64."""

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

TERMS = 40


def series_loss(z: Tensor, labels: Tensor, variance: float) -> Tensor:
    """Return the posterior loss of unit rows z: (N, d) by products of shape (C, N, d)."""
    d = z.shape[1]
    classes, targets = torch.unique(labels, return_inverse=True)
    means = torch.eye(d, dtype=torch.float64)[classes]
    t = (z.double().unsqueeze(0) * means.unsqueeze(1)).sum(2)
    total = torch.zeros_like(t)
    for n in range(TERMS):
        log_weight = math.lgamma((d + n) / 2) - math.lgamma(d / 2) - math.lgamma(n + 1)
        total = total + (math.sqrt(2 / variance) * t) ** n * math.exp(log_weight)
    return cross_entropy(total.log().T, targets, reduction="sum")
