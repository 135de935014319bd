"""ResNet-18 of any width: for small images, with the large stem for CORe50, and pre-activation.

K. He et al., "Deep Residual Learning for Image Recognition", 2015, https://arxiv.org/abs/1512.03385,
and "Identity Mappings in Deep Residual Networks", 2016, https://arxiv.org/abs/1603.05027. The last
feature map is pooled in windows of 4 × 4, not globally: larger images give more features. Views of
a lower resolution have smaller windows and as many features.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from sterad.encoders.encoder import ENCODERS, Encoder, Folds, check_image_arguments

IMAGE_ENCODERS = ("resnet18", "resnet18-7x7", "preact-resnet18")
"""Registered names of the encoders here, which take no feature vectors."""
POOL_SIZE = 4
"""Side of the pooling window, in pixels of the last feature map."""


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


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions with a shortcut from the input to the output."""

    folds: ClassVar[Folds] = (
        ("conv1", "norm1"),
        ("conv2", "norm2"),
        ("shortcut.0", "shortcut.1"),
    )

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        """Map `inputs` channels to `outputs` channels and divide the sides by `stride`."""
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
        """Return (n, outputs, ⌈h / stride⌉, ⌈w / stride⌉) for x: (n, inputs, h, w)."""
        y = functional.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        return functional.relu(y + self.shortcut(x), inplace=True)


class PreactivationBlock(nn.Module):
    """A block whose normalizations and ReLUs precede its convolutions."""

    folds: ClassVar[Folds] = (("conv1", "norm2"),)

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        """Map `inputs` channels to `outputs` channels and divide the sides by `stride`."""
        super().__init__()
        self.norm1 = BatchNorm(inputs)
        self.conv1 = conv3x3(inputs, outputs, stride)
        self.norm2 = BatchNorm(outputs)
        self.conv2 = conv3x3(outputs, outputs, 1)
        self.shortcut: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, outputs, ⌈h / stride⌉, ⌈w / stride⌉) for x: (n, inputs, h, w)."""
        activated = functional.relu(self.norm1(x))
        # The identity shortcut uses x itself, a convolution the activated input, as in the paper.
        shortcut: Tensor = x if self.shortcut is None else self.shortcut(activated)
        y = functional.relu(self.norm2(self.conv1(activated)), inplace=True)
        z: Tensor = self.conv2(y)
        return z + shortcut


class ResNet18(Encoder):
    """A stem and eight blocks, two each with 1, 2, 4 and 8 × width channels."""

    folds: ClassVar[Folds] = (("stem.0", "stem.1"),)

    def __init__(self, input_shape: tuple[int, ...], width: int, large_stem: bool = False) -> None:
        """Take images, `input_shape` = (c, h, w); the large stem divides the sides by 4."""
        super().__init__()
        check_image_arguments(input_shape, width)
        channels, *size = input_shape
        if large_stem:
            conv = nn.Conv2d(channels, width, 7, stride=2, padding=3, bias=False)
        else:
            conv = conv3x3(channels, width, 1)
        self.stem = nn.Sequential(conv, BatchNorm(width), nn.ReLU(inplace=True))
        if large_stem:
            self.stem.append(nn.MaxPool2d(3, 2, padding=1))
        self.stages = four_stages(BasicBlock, width)
        self.map_size = reduced_size(size, 32 if large_stem else 8)
        self.pool, self.features = pooling(self.map_size, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) for x: (n, c, h, w)."""
        return pooled(self.stages(self.stem(x)), self.pool, self.map_size).flatten(1)

    def stage_outputs(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the feature maps of the first three stages, and the features."""
        *earlier, last = pass_stages(self.stages, self.stem(x))
        return *earlier, pooled(last, self.pool, self.map_size).flatten(1)


@ENCODERS.register("resnet18")
def resnet18(input_shape: tuple[int, ...], width: int) -> Encoder:
    """Return a ResNet-18 whose 3 × 3 stem keeps the size: for small images."""
    return ResNet18(input_shape, width)


@ENCODERS.register("resnet18-7x7")
def resnet18_7x7(input_shape: tuple[int, ...], width: int) -> Encoder:
    """Return a ResNet-18 whose 7 × 7 stem and max-pool divide the sides by 4: for CORe50."""
    return ResNet18(input_shape, width, large_stem=True)


@ENCODERS.register("preact-resnet18")
class PreactivationResNet18(Encoder):
    """A pre-activation ResNet-18 for small images."""

    def __init__(self, input_shape: tuple[int, ...], width: int) -> None:
        """Take images, `input_shape` = (c, h, w)."""
        super().__init__()
        check_image_arguments(input_shape, width)
        channels, *size = input_shape
        self.stem = conv3x3(channels, width, 1)
        self.stages = four_stages(PreactivationBlock, width)
        self.norm = BatchNorm(8 * width)
        self.map_size = reduced_size(size, 8)
        self.pool, self.features = pooling(self.map_size, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) for x: (n, c, h, w)."""
        y = functional.relu(self.norm(self.stages(self.stem(x))))
        return pooled(y, self.pool, self.map_size).flatten(1)

    def stage_outputs(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the feature maps of the first three stages, and the features."""
        *earlier, last = pass_stages(self.stages, self.stem(x))
        y = functional.relu(self.norm(last))
        return *earlier, pooled(y, self.pool, self.map_size).flatten(1)


def conv3x3(inputs: int, outputs: int, stride: int) -> nn.Conv2d:
    """Return a 3 × 3 convolution without bias that divides the sides by `stride`."""
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)


def four_stages(block: Callable[[int, int, int], nn.Module], width: int) -> nn.Sequential:
    """Return eight blocks, two of each width; each width except the first halves the sides."""
    stages, inputs = [], width
    for outputs, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        stages.append(nn.Sequential(block(inputs, outputs, stride), block(outputs, outputs, 1)))
        inputs = outputs
    return nn.Sequential(*stages)


def pass_stages(stages: nn.Sequential, x: Tensor) -> list[Tensor]:
    """Return the outputs of all stages, one after the other."""
    outputs = []
    for stage in stages:
        x = stage(x)
        outputs.append(x)
    return outputs


def reduced_size(size: Sequence[int], reduction: int) -> tuple[int, int]:
    """Return height and width of the last feature map for images of a size in pixels."""
    rows, columns = (-(-side // reduction) for side in size)
    return rows, columns


def pooling(size: tuple[int, int], width: int) -> tuple[tuple[int, int], int]:
    """Return the pooling window of a last feature map of a size, and the number of features."""
    rows, columns = size
    window = min(POOL_SIZE, rows), min(POOL_SIZE, columns)
    return window, 8 * width * (rows // window[0]) * (columns // window[1])


def pooled(y: Tensor, window: tuple[int, int], size: tuple[int, int]) -> Tensor:
    """Return the means of windows of y: (n, c, h, w), which has as many as a map of `size`.

    Another size than that one, of a view in lower resolution, has its own window.
    """
    if (found := tuple(y.shape[2:])) == size:
        return functional.avg_pool2d(y, window)
    counts = size[0] // window[0], size[1] // window[1]
    stride = max(found[0] // counts[0], 1), max(found[1] // counts[1], 1)
    # As many windows as there are, which overlap if they do not divide the map.
    window = found[0] - (counts[0] - 1) * stride[0], found[1] - (counts[1] - 1) * stride[1]
    return functional.avg_pool2d(y, window, stride)
