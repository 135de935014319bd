"""The loss of OnPro between the class means of two views, and those means."""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def class_means(z: Tensor, weights: Tensor) -> Tensor:
    """Return the mean of each class, scaled to unit length: (k, d); 0 for an absent class.

    z: (n, d); weights: (n, k), how much each row belongs to each class.

    >>> class_means(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return normalize(weights.T @ z)


def prototype_loss(first: Tensor, second: Tensor, present: Tensor, temperature: float) -> Tensor:
    """Return the NT-Xent loss between the means of two views, averaged over classes and views.

    first, second: (k, d) unit rows; present: (k,) bool, the classes that take part. The positive of
    a mean is that of its class in the other view, its negatives are all others of both views.

    >>> one = torch.eye(2)
    >>> round(prototype_loss(one, one, torch.tensor([True, True]), 1.0).item(), 4)  # log(1 + 2/e)
    0.5514
    """
    means, taking = torch.cat([first, second]), present.repeat(2)
    left_out = ~taking | torch.eye(len(means), dtype=torch.bool, device=means.device)
    cosines = (means @ means.T / temperature).masked_fill(left_out, torch.finfo(means.dtype).min)
    log_probs = cosines.log_softmax(dim=1)
    k = len(first)
    pairs = torch.cat([log_probs.diagonal(k), log_probs.diagonal(-k)])
    return -torch.where(taking, pairs, 0).sum() / taking.sum().clamp_min(1)
