"""Random numbers that torch draws with a generator and, where it can, with gradients."""

import torch
from torch import Tensor

from sterad.torch_private import standard_gamma


def gamma(shape: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw from gamma laws of unit scale, with gradients with respect to `shape`.

    >>> draws = gamma(torch.full((5,), 2.0), torch.Generator().manual_seed(0))
    >>> draws.shape, bool((draws > 0).all())
    (torch.Size([5]), True)
    """
    return standard_gamma(shape, generator)


def symmetric_beta(like: Tensor, p: int, generator: torch.Generator | None) -> Tensor:
    """Draw (1 - t)/2, t the cosine of a uniform point with a fixed one in p + 1 dimensions."""
    half = torch.full_like(like, p / 2)
    one, other = gamma(half, generator), gamma(half, generator)
    return one / (one + other)
