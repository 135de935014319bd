"""The losses of OCM: bounds on mutual information from a matrix of similarities, by InfoNCE.

For similarities S: (N, N) with labels of rows and columns, a temperature T and ε = 1e-8,

    E = exp(S / T),   ℓ_ij = -log(E_ij / (Σ_k E_ik + ε) + ε),   W_ij = 1[same label] / how many.

The largest S of a row is subtracted first, in pairs the largest besides S_ii. The released code
takes S_ii too: at T = 0.07 a pair that is 1.3 less similar then weighs less than ε and stops
learning.
"""

import torch
from torch import Tensor

EPSILON = 1e-8


def alike_loss(similarity: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Return Σ W∘ℓ / N, which pulls together what has the same label, itself included.

    similarity: (N, N); labels: (N,) of its rows and, in the same order, of its columns.

    >>> round(alike_loss(torch.zeros(4, 4), torch.tensor([0, 0, 1, 1]), 0.07).exp().item(), 3)
    4.0
    """
    costs = _costs(similarity / temperature)
    return (_shares(labels) * costs).sum() / len(labels)


def paired_loss(similarity: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Return [Σ_i ℓ(i, i + N/2) + ℓ(i + N/2, i)] / N + 2 Σ W∘ℓ / N, none similar to itself.

    Row i + N/2 is another view of row i. The diagonal of E is 0, so that ℓ_ii is the constant
    -log ε: it adds to the value and nothing to the gradient.

    >>> loss = paired_loss(torch.zeros(2, 2), torch.tensor([3, 3]), 0.07)
    >>> round(loss.item(), 3)  # ℓ = 0 between the two, -log ε ≈ 18.421 on the diagonal
    18.421
    """
    n = len(labels)
    itself = torch.eye(n, dtype=torch.bool, device=labels.device)
    costs = _costs((similarity / temperature).masked_fill(itself, -torch.inf))
    # Halves of the rows and columns: the upper right and the lower left block hold the pairs.
    pairs = costs.diagonal(n // 2).sum() + costs.diagonal(-(n // 2)).sum()
    return (pairs + 2 * (_shares(labels) * costs).sum()) / n


def _costs(scaled: Tensor) -> Tensor:
    shifted = (scaled - scaled.detach().amax(dim=1, keepdim=True)).exp()
    return -(shifted / (shifted.sum(dim=1, keepdim=True) + EPSILON) + EPSILON).log()


def _shares(labels: Tensor) -> Tensor:
    same = (labels[:, None] == labels).float()
    return same / (same.sum(dim=1, keepdim=True) + EPSILON)
