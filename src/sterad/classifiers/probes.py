"""Logistic regression on features."""

from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers.classifier import CLASSIFIERS, Batches, gather


@CLASSIFIERS.register("linear-probe")
@dataclass(frozen=True, eq=False)
class LinearProbe:
    """Multinomial logistic regression on the features, with a small L2 penalty.

    weight: (k, d); bias: (k,); labels: (k,).
    """

    weight: Tensor
    bias: Tensor
    labels: Tensor

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, k) logits."""
        return features @ self.weight.T + self.bias

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Minimize mean cross-entropy + 1e-4 |W|² by L-BFGS from zero, without randomness."""
        features, labels, rows = gather(batches)
        weight, bias = _minimize_cross_entropy(features, rows, len(labels))
        return cls(weight.float().to(labels.device), bias.float().to(labels.device), labels)


@CLASSIFIERS.register("standardized-probe")
@dataclass(frozen=True, eq=False)
class StandardizedProbe(LinearProbe):
    """Logistic regression on features that are scaled to mean 0 and variance 1.

    Unit-length features of a network are close to each other: for them the penalty of the linear
    probe is strong, here it does not depend on their scale.
    """

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Fit as the linear probe does, and return its weights for features that are not scaled."""
        features, labels, rows = gather(batches)
        mean, scale = features.mean(dim=0), features.std(dim=0, correction=0).clamp_min(1e-12)
        scaled = (features - mean) / scale
        weight, bias = _minimize_cross_entropy(scaled, rows, len(labels))
        weight = weight / scale
        bias = bias - weight @ mean
        return cls(weight.float().to(labels.device), bias.float().to(labels.device), labels)


def _minimize_cross_entropy(features: Tensor, rows: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Return weights (classes, d) and biases of mean cross-entropy + 1e-4 |W|², by L-BFGS."""
    # Clones, because autograd does not accept tensors created in inference mode.
    features, rows = features.clone(), rows.clone()
    weight = features.new_zeros(classes, features.shape[1], requires_grad=True)
    bias = features.new_zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=200, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(features @ weight.T + bias, rows) + 1e-4 * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weight.detach(), bias.detach()
