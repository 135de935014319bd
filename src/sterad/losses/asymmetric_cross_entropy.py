"""Asymmetric cross-entropy: the logits of earlier classes get no gradient from new samples."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def asymmetric_cross_entropy(logits: Tensor, labels: Tensor, seen: Tensor) -> Tensor:
    """Return the mean cross-entropy over the labels of the batch and the classes never seen.

    logits: (n, outputs); labels: (n,) int64; seen: (k,) int64, the classes so far. Seen classes
    that are not among the labels are left out of the softmax.

    >>> logits, seen = torch.tensor([[1.0, 9.0, 2.0, 0.5]]), torch.tensor([0, 1])
    >>> loss = asymmetric_cross_entropy(logits, torch.tensor([0]), seen)
    >>> bool(loss == cross_entropy(logits[:, [0, 2, 3]], torch.tensor([0])))
    True
    """
    absent = torch.zeros(logits.shape[1], dtype=torch.bool, device=logits.device)
    absent[seen] = True
    absent[labels] = False
    return cross_entropy(logits.masked_fill(absent, float("-inf")), labels)
