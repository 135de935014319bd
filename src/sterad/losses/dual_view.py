"""The loss of DVC: both views of an image are classified rightly, alike, and into many classes."""

import sys

import torch
import torch.nn.functional as F
from torch import Tensor


def dual_view_loss(
    first: Tensor, second: Tensor, joint: Tensor, labels: Tensor, consistency: float
) -> Tensor:
    """Return CE - (H(P) + H(P̃) + H(Q)) / 3 + consistency · mean |[Q; Q] - [P; P̃]|.

    first, second, joint: (n, C) raw logits of the views and of the pair; P, P̃, Q: their softmax;
    CE: the mean cross-entropy of both views; H: `marginal_entropy`.

    >>> z = torch.zeros(3, 4)
    >>> round(dual_view_loss(z, z, z, torch.tensor([0, 1, 3]), 4.0).item(), 4)  # log 4 - log 4
    0.0
    """
    views = torch.cat([first, second])
    given, agreed = views.softmax(dim=1), joint.softmax(dim=1)
    entropies = [marginal_entropy(p) for p in (*given.chunk(2), agreed)]
    return (
        F.cross_entropy(views, labels.repeat(2))
        - torch.stack(entropies).mean()
        + consistency * (agreed.repeat(2, 1) - given).abs().mean()
    )


def marginal_entropy(p: Tensor) -> Tensor:
    """Return the entropy of the mean of distributions p: (n, C) rows.

    The mean is scaled to sum to 1, then kept from 0 by the precision of double numbers.

    >>> round(marginal_entropy(torch.eye(2)).exp().item(), 4)
    2.0
    >>> 0 < marginal_entropy(torch.eye(1, 2)).item() < 1e-14
    True
    """
    mean = p.mean(dim=0)
    mean = (mean / mean.sum()).clamp_min(sys.float_info.epsilon)
    return -(mean * mean.log()).sum()
