"""Per-sample choice: applies an operator to a random part of a batch."""

import torch
from torch import Tensor

from sterad.devices import to_device


def draw_chosen(n: int, probability: float, rng: torch.Generator) -> Tensor:
    """Choose each of n samples with `probability`: (n,) bool."""
    return torch.rand(n, generator=rng, device=rng.device) < probability


def choose(x: Tensor, changed: Tensor, chosen: Tensor) -> Tensor:
    """Return `changed` for the chosen samples of x: (n, c, h, w), and x for the others.

    Interpolation with a weight of 0 or 1 is exact, and on a CPU three times as fast as
    `torch.where`.
    """
    return torch.lerp(x, changed.expand_as(x), per_image(chosen, x))


def per_image(values: Tensor, x: Tensor) -> Tensor:
    """Reshape one value per image, (n,), so that it broadcasts over x: (n, c, h, w)."""
    return to_device(values.to(x.dtype), x.device).view(-1, 1, 1, 1)
