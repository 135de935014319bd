"""The loss of DVC: cross-entropy of two views, their consistency, and the entropy of classes."""

import sys

import torch
import torch.nn.functional as F
from torch import Tensor


def dual_view_loss(
    first: Tensor, second: Tensor, joint: Tensor, labels: Tensor, consistency: float
) -> Tensor:
    """Return CE - (H(P) + H(P̃) + H(Q)) / 3 + consistency · mean |[Q; Q] - [P; P̃]|.

    first, second, joint: (n, C) logits of the views and of the pair, with softmax P, P̃ and Q;
    CE: the mean cross-entropy of both views; H: `marginal_entropy`.

    >>> z = torch.zeros(3, 4)
    >>> round(dual_view_loss(z, z, z, torch.tensor([0, 1, 3]), 4.0).item(), 4)  # log 4 - log 4
    0.0
    """
    views = torch.cat([first, second])
    view_probs, joint_probs = views.softmax(dim=1), joint.softmax(dim=1)
    entropies = [marginal_entropy(p) for p in (*view_probs.chunk(2), joint_probs)]
    return (
        F.cross_entropy(views, labels.repeat(2))
        - torch.stack(entropies).mean()
        + consistency * (joint_probs.repeat(2, 1) - view_probs).abs().mean()
    )


def marginal_entropy(p: Tensor) -> Tensor:
    """Return the entropy of the mean of the distributions p: (n, C).

    The mean is scaled to sum to 1, then bounded below by float64's eps.

    >>> round(marginal_entropy(torch.eye(2)).exp().item(), 4)
    2.0
    >>> 0 < marginal_entropy(torch.eye(1, 2)).item() < 1e-14
    True
    """
    mean = p.mean(dim=0)
    mean = (mean / mean.sum()).clamp_min(sys.float_info.epsilon)
    return -(mean * mean.log()).sum()
