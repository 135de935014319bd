"""Pixels at rest are bytes, pixels in use are floats in [0, 1]; there and back is exact."""

import torch
from torch import Tensor

WHITE = torch.tensor(255.0, dtype=torch.float32, device="cpu")
"""Made once: in the middle of a step, a number that becomes a tensor costs more than a division."""


def to_unit(inputs: Tensor) -> Tensor:
    """Return bytes as float32 in [0, 1]; what is float already stays as it is.

    >>> to_unit(torch.tensor([0, 51, 255], dtype=torch.uint8))
    tensor([0.0000, 0.2000, 1.0000])
    """
    return inputs.float().div_(WHITE) if inputs.dtype == torch.uint8 else inputs


def to_bytes(images: Tensor) -> Tensor:
    """Return images in [0, 1] as bytes, rounded.

    >>> to_bytes(torch.tensor([0.0, 0.2, 1.0]))
    tensor([  0,  51, 255], dtype=torch.uint8)
    """
    return images.mul(255).round_().clamp_(0, 255).to(torch.uint8)
