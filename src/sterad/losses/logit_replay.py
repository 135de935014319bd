"""Logit replay: how far logits have drifted from what they were when they were stored."""

import torch
from torch import Tensor


def logit_replay_loss(logits: Tensor, stored: Tensor, widths: Tensor) -> Tensor:
    """Return the mean squared drift over the outputs that there were when a row was stored.

    logits: (n, outputs); stored: (n, w) with w ≤ outputs, as the head may have grown since;
    widths: (n,) int64, the outputs of the head when each row was stored, at most w.

    >>> logits = torch.tensor([[1.0, 2.0, 7.0], [1.0, 2.0, 7.0]])
    >>> stored = torch.tensor([[1.0, 0.0], [4.0, 0.0]])
    >>> logit_replay_loss(logits, stored, torch.tensor([2, 1]))  # (0² + 2² + 3²) / 3
    tensor(4.3333)
    """
    width = stored.shape[1]
    known = torch.arange(width, device=widths.device) < widths[:, None]
    # Not by selecting the known ones: how many there are would have to leave the device first.
    return ((logits[:, :width] - stored).square() * known).sum() / known.sum()
