"""Logit replay: the squared difference between current and stored logits."""

import torch
from torch import Tensor


def logit_replay_loss(logits: Tensor, stored: Tensor, widths: Tensor) -> Tensor:
    """Return the mean squared difference over the outputs that existed when a row was stored.

    logits: (n, outputs); stored: (n, w) with w ≤ outputs, as the head may have grown since;
    widths: (n,) int64, the number of outputs when each row was stored, at most w.

    >>> logits = torch.tensor([[1.0, 2.0, 7.0], [1.0, 2.0, 7.0]])
    >>> stored = torch.tensor([[1.0, 0.0], [4.0, 0.0]])
    >>> logit_replay_loss(logits, stored, torch.tensor([2, 1]))  # (0² + 2² + 3²) / 3
    tensor(4.3333)
    """
    width = stored.shape[1]
    existed = torch.arange(width, device=widths.device) < widths[:, None]
    # A mask instead of indexing, which would copy the number of entries to the host and wait.
    return ((logits[:, :width] - stored).square() * existed).sum() / existed.sum()
