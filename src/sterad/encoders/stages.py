"""Experts on the stages of an encoder: features of the last stage's size from every stage.

An expert of a stage is a gate, convolutions that divide the sides by 2 until those of the last
stage, and the mean over the image. The last stage's expert is the encoder itself.

The gate multiplies by the sigmoid of a 1 × 1 convolution. A reduction is a depthwise 3 × 3 and a
1 × 1 convolution. They are normalized per image, without running statistics, so that a pass which
does not need the experts leaves no trace in them. A stage of vectors has linear layers instead.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from sterad.encoders.encoder import Encoder
from sterad.errors import SteradError

Shape = tuple[int, ...]


class StageExpert(nn.Module):
    """Features from one output of a stage: (n, c, h, w) or (n, c)."""

    def __init__(self, shape: Shape, widths: Sequence[int]) -> None:
        """Map outputs of a shape, (c, h, w) or (c,), over these numbers of channels to the last."""
        super().__init__()
        channels, is_map = shape[0], len(shape) == 3
        self.gate = nn.Conv2d(channels, channels, 1) if is_map else nn.Linear(channels, channels)
        make = reduction if is_map else _linear
        self.layers = nn.Sequential(*(make(a, b) for a, b in pairwise((channels, *widths))))

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features)."""
        y: Tensor = self.layers(x * self.gate(x).sigmoid())
        return y.mean(dim=(2, 3)) if y.ndim == 4 else y


def reduction(inputs: int, outputs: int) -> nn.Module:
    """Return layers that halve the sides of (n, inputs, h, w) and give `outputs` channels."""
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, 2, padding=1, groups=inputs, bias=False),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.GroupNorm(1, outputs),
        nn.ReLU(inplace=True),
    )


def _linear(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(inplace=True))


class StageExperts(nn.Module):
    """An expert for each stage of an encoder but the last."""

    def __init__(self, shapes: Sequence[Shape], features: int) -> None:
        """Take outputs of these shapes, see `stage_shapes`; an expert has so many features."""
        super().__init__()
        widths = [*(shape[0] for shape in shapes[1:]), features]
        self.experts = nn.ModuleList(
            StageExpert(shape, widths[index:]) for index, shape in enumerate(shapes)
        )

    def forward(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the features of each stage; those of the last one are its output."""
        earlier = zip(self.experts, outputs[:-1], strict=True)
        return [*(expert(x) for expert, x in earlier), outputs[-1]]


@torch.no_grad()
def stage_shapes(encoder: Encoder, input_shape: Shape) -> list[Shape]:
    """Return the shapes of the outputs of all stages but the last; refuse other outputs."""
    training, name = encoder.training, type(getattr(encoder, "module", encoder)).__name__
    encoder.eval()
    outputs = encoder.stage_outputs(torch.zeros(2, *input_shape))
    encoder.train(training)
    if not isinstance(outputs, tuple | list) or len(outputs) < 2:
        raise SteradError(
            f"stage_outputs of the encoder {name} returns {type(outputs).__name__} of "
            f"{len(outputs)}: return the outputs of two or more stages, the features last"
        )
    *earlier, last = (tuple(one.shape) for one in outputs)
    if last != (2, encoder.features) or any(len(one) not in (2, 4) for one in earlier):
        raise SteradError(
            f"stage_outputs of the encoder {name} returns tensors of the shapes {earlier} and "
            f"{last} for two inputs: return maps (n, channels, height, width) or vectors (n, d), "
            f"and last the features, (n, {encoder.features})"
        )
    return [shape[1:] for shape in earlier]
