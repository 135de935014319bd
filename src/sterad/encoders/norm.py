"""Batch normalization that can also meet a single pixel."""

from torch import Tensor, nn
from torch.nn import functional


class BatchNorm(nn.BatchNorm2d):
    """torch's, except where a channel has one value only, which has no variance.

    A stream can end with a batch of one image, whose last map may be one pixel wide. torch refuses
    to train on it; here that layer uses its running statistics and leaves them as they are.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalize input: (n, c, h, w) by the batch, or a single pixel by what came before."""
        if self.training and input.shape[0] * input.shape[2] * input.shape[3] == 1:
            return functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(input)
