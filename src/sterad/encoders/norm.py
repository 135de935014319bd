"""Batch normalization that accepts a single value per channel in training."""

from torch import Tensor, nn
from torch.nn import functional


class BatchNorm(nn.BatchNorm2d):
    """`BatchNorm2d`, which uses its running statistics if a channel has only one value.

    A stream can end with a batch of one image, whose last feature map may be one pixel. One value
    has no variance, and torch raises an error; here the statistics are used and not updated.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalize input: (n, c, h, w)."""
        if self.training and input.shape[0] * input.shape[2] * input.shape[3] == 1:
            return functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(input)
