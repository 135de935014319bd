"""The losses of OCM: InfoNCE bounds on mutual information from a matrix of similarities.

For similarities S: (N, N) with labels of rows and columns, a temperature T and ε = 1e-8,

    E = exp(S / T),   ℓ_ij = -log(E_ij / (Σ_k E_ik + ε) + ε),   W_ij = 1[same label] / count.

The largest S of each row is subtracted first; in `paired_loss`, the largest except S_ii. The
released code includes S_ii: at T = 0.07, a pair whose similarity is 1.3 smaller then has a weight
below ε, and its gradient vanishes.
"""

import torch
from torch import Tensor

EPSILON = 1e-8


def alike_loss(similarity: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Return Σ W∘ℓ / N, over all pairs of the same label, the diagonal included.

    similarity: (N, N); labels: (N,), of the rows and of the columns.

    >>> round(alike_loss(torch.zeros(4, 4), torch.tensor([0, 0, 1, 1]), 0.07).exp().item(), 3)
    4.0
    """
    costs = _costs(similarity / temperature)
    return (_weights(labels) * costs).sum() / len(labels)


def paired_loss(similarity: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Return [Σ_i ℓ(i, i + N/2) + ℓ(i + N/2, i)] / N + 2 Σ W∘ℓ / N, with E_ii = 0.

    Row i + N/2 is another view of row i. ℓ_ii is the constant -log ε, which adds to the value but
    not to the gradient.

    >>> loss = paired_loss(torch.zeros(2, 2), torch.tensor([3, 3]), 0.07)
    >>> round(loss.item(), 3)  # ℓ = 0 between the two, -log ε ≈ 18.421 on the diagonal
    18.421
    """
    n = len(labels)
    diagonal = torch.eye(n, dtype=torch.bool, device=labels.device)
    costs = _costs((similarity / temperature).masked_fill(diagonal, -torch.inf))
    # The two views of an image are N/2 rows apart.
    pairs = costs.diagonal(n // 2).sum() + costs.diagonal(-(n // 2)).sum()
    return (pairs + 2 * (_weights(labels) * costs).sum()) / n


def _costs(scaled: Tensor) -> Tensor:
    """Return ℓ for the scaled similarities S / T."""
    exponentials = (scaled - scaled.detach().amax(dim=1, keepdim=True)).exp()
    return -(exponentials / (exponentials.sum(dim=1, keepdim=True) + EPSILON) + EPSILON).log()


def _weights(labels: Tensor) -> Tensor:
    """Return W."""
    same = (labels[:, None] == labels).float()
    return same / (same.sum(dim=1, keepdim=True) + EPSILON)
