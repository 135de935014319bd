"""Pre-activation ResNet-18 by width: normalize and rectify first, then convolve.

He et al., Identity Mappings in Deep Residual Networks, https://arxiv.org/abs/1603.05027. Sizes,
stem and pooling are those of `resnet`.
"""

from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from sterad.encoders.encoder import ENCODERS, Encoder, Folds, check_image, check_width
from sterad.encoders.norm import BatchNorm
from sterad.encoders.resnet import conv3x3, four_stages, pooling


class PreactivationBlock(nn.Module):
    """Two 3 × 3 convolutions of activated inputs; nothing comes after the sum."""

    folds: ClassVar[Folds] = (("conv1", "norm2"),)

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        """Map `inputs` channels to `outputs`, and divide the side by `stride`."""
        super().__init__()
        self.norm1 = BatchNorm(inputs)
        self.conv1 = conv3x3(inputs, outputs, stride)
        self.norm2 = BatchNorm(outputs)
        self.conv2 = conv3x3(outputs, outputs, 1)
        self.shortcut: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, outputs, ⌈s / stride⌉, ⌈s / stride⌉) for x: (n, inputs, s, s)."""
        active = functional.relu(self.norm1(x))
        # A shape that changes starts from the activated input; otherwise x passes untouched.
        around: Tensor = x if self.shortcut is None else self.shortcut(active)
        y = functional.relu(self.norm2(self.conv1(active)), inplace=True)
        z: Tensor = self.conv2(y)
        return z + around


@ENCODERS.register("preact-resnet18")
class PreactivationResNet18(Encoder):
    """A ResNet-18 for small images whose blocks activate before they convolve."""

    def __init__(self, input_shape: tuple[int, ...], width: int) -> None:
        """Take images of `input_shape` = (c, s, s)."""
        super().__init__()
        check_image(input_shape)
        check_width(width)
        channels, side, _ = input_shape
        self.stem = conv3x3(channels, width, 1)
        self.stages = four_stages(PreactivationBlock, width)
        self.norm = BatchNorm(8 * width)
        self.pool, self.features = pooling(-(-side // 8), width)

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) for x: (n, c, s, s)."""
        y = functional.relu(self.norm(self.stages(self.stem(x))))
        return functional.avg_pool2d(y, self.pool).flatten(1)
