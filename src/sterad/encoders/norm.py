"""Batch normalisation that can also meet a handful of pixels."""

import torch
from torch import Tensor, nn
from torch.nn import functional

FEW = 8
"""Values of a channel below which their own variance is no measure."""


class BatchNorm(nn.BatchNorm2d):
    """torch's, except where a channel has a few values only.

    A stream can end with a batch of one or two images, whose last maps may be one pixel wide. Two
    values that happen to be close have hardly any variance: divided by it, layer after layer, one
    such step has thrown a trained network back to chance. Here that layer normalises by its running
    statistics, which follow the batch first; a single value, of which torch refuses to take the
    variance, leaves them as they are.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalise input: (n, c, h, w) by the batch, or few values by what came before."""
        values = input.shape[0] * input.shape[2] * input.shape[3]
        if not self.training or values >= FEW:
            return super().forward(input)
        if values > 1:
            with torch.no_grad():
                super().forward(input)
        # Copies, as another pass may move the statistics before this one is walked back.
        mean, variance = (
            None if one is None else one.clone() for one in (self.running_mean, self.running_var)
        )
        return functional.batch_norm(input, mean, variance, self.weight, self.bias, eps=self.eps)
