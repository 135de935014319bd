"""Cross-entropy among some of the classes: the logits of all others get no gradient."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def cross_entropy_among(logits: Tensor, labels: Tensor, classes: Tensor, **options: Any) -> Tensor:
    """Return the cross-entropy of a softmax over `classes` alone.

    logits: (n, outputs); labels: (n,) int64, each among the classes; classes: (k,) int64,
    ascending. options: those of torch's cross_entropy.

    >>> logits = torch.tensor([[1.0, 9.0, 2.0]])
    >>> loss = cross_entropy_among(logits, torch.tensor([2]), torch.tensor([0, 2]))
    >>> bool(loss == cross_entropy(logits[:, [0, 2]], torch.tensor([1])))
    True
    """
    return cross_entropy(logits[:, classes], torch.searchsorted(classes, labels), **options)
