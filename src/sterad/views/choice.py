"""Per-sample choice: which images of a batch an operator changes."""

import torch
from torch import Tensor

from sterad.devices import to_device


def draw_chosen(n: int, probability: float, rng: torch.Generator) -> Tensor:
    """Choose each of n samples with one probability; (n,) bool."""
    return torch.rand(n, generator=rng, device=rng.device) < probability


def choose(x: Tensor, changed: Tensor, chosen: Tensor) -> Tensor:
    """Return `changed` for the chosen samples of x: (n, c, h, w), and x for the others.

    Interpolation by a weight of 0 or 1 is exact, and in torch on a CPU three times faster than
    `torch.where`.
    """
    return torch.lerp(x, changed.expand_as(x), per_image(chosen, x))


def per_image(values: Tensor, x: Tensor) -> Tensor:
    """Shape one value per image, (n,), so that it meets x: (n, c, h, w)."""
    return to_device(values.to(x.dtype), x.device).view(-1, 1, 1, 1)
