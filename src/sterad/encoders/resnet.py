"""ResNet-18 by width, as the field trains it on small images, and with the large stem for CORe50.

He et al., Deep Residual Learning for Image Recognition, https://arxiv.org/abs/1512.03385. The last
map is pooled in windows of 4 × 4, not globally: larger images have more features.
"""

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from sterad.encoders.encoder import ENCODERS, Encoder, Folds, check_image, check_width
from sterad.encoders.norm import BatchNorm

POOL = 4


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions around which the input takes a shortcut."""

    folds: ClassVar[Folds] = (
        ("conv1", "norm1"),
        ("conv2", "norm2"),
        ("shortcut.0", "shortcut.1"),
    )

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        """Map `inputs` channels to `outputs`, and divide the side by `stride`."""
        super().__init__()
        self.conv1 = conv3x3(inputs, outputs, stride)
        self.norm1 = BatchNorm(outputs)
        self.conv2 = conv3x3(outputs, outputs, 1)
        self.norm2 = BatchNorm(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), BatchNorm(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, outputs, ⌈s / stride⌉, ⌈s / stride⌉) for x: (n, inputs, s, s)."""
        y = functional.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        return functional.relu(y + self.shortcut(x), inplace=True)


class ResNet18(Encoder):
    """A stem, then eight blocks with width, 2 width, 4 width and 8 width channels, two of each."""

    folds: ClassVar[Folds] = (("stem.0", "stem.1"),)

    def __init__(self, input_shape: tuple[int, ...], width: int, large_stem: bool = False) -> None:
        """Take images of `input_shape` = (c, s, s); the large stem divides the side by 4."""
        super().__init__()
        check_image(input_shape)
        check_width(width)
        channels, side, _ = input_shape
        self.stem = _large_stem(channels, width) if large_stem else _small_stem(channels, width)
        self.stages = four_stages(BasicBlock, width)
        self.pool, self.features = pooling(-(-side // (32 if large_stem else 8)), width)

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) for x: (n, c, s, s)."""
        return functional.avg_pool2d(self.stages(self.stem(x)), self.pool).flatten(1)


@ENCODERS.register("resnet18")
def resnet18(input_shape: tuple[int, ...], width: int) -> Encoder:
    """Return a ResNet-18 whose 3 × 3 stem keeps the side: for small images."""
    return ResNet18(input_shape, width)


@ENCODERS.register("resnet18-7x7")
def resnet18_7x7(input_shape: tuple[int, ...], width: int) -> Encoder:
    """Return a ResNet-18 whose 7 × 7 stem and max-pool divide the side by 4: for CORe50."""
    return ResNet18(input_shape, width, large_stem=True)


def conv3x3(inputs: int, outputs: int, stride: int) -> nn.Conv2d:
    """Return a 3 × 3 convolution without bias that divides the side by `stride`."""
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)


def four_stages(block: Callable[[int, int, int], nn.Module], width: int) -> nn.Sequential:
    """Return eight blocks, two of each width; each width but the first halves the side."""
    stages, inputs = [], width
    for outputs, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        stages.append(nn.Sequential(block(inputs, outputs, stride), block(outputs, outputs, 1)))
        inputs = outputs
    return nn.Sequential(*stages)


def pooling(side: int, width: int) -> tuple[int, int]:
    """Return the pooling window on last maps of `side`, and how many features that leaves."""
    window = min(POOL, side)
    return window, 8 * width * (side // window) ** 2


def _small_stem(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(conv3x3(channels, width, 1), BatchNorm(width), nn.ReLU(inplace=True))


def _large_stem(channels: int, width: int) -> nn.Sequential:
    conv = nn.Conv2d(channels, width, 7, stride=2, padding=3, bias=False)
    return nn.Sequential(
        conv, BatchNorm(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)
    )
