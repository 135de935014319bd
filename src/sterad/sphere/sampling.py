"""Random draws from a generator: gamma and symmetric beta variables."""

import torch
from torch import Tensor

from sterad.torch_private import standard_gamma


def gamma(shape: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw gamma variables of scale 1, differentiable with respect to `shape`.

    >>> draws = gamma(torch.full((5,), 2.0), torch.Generator().manual_seed(0))
    >>> draws.shape, bool((draws > 0).all())
    (torch.Size([5]), True)
    """
    return standard_gamma(shape, generator)


def symmetric_beta(like: Tensor, p: int, generator: torch.Generator | None) -> Tensor:
    """Draw beta variables with both parameters p/2, in the shape and dtype of `like`.

    They are (1 - t)/2 for the cosine t of a uniform point in p + 1 dimensions with a fixed one.
    """
    half = torch.full_like(like, p / 2)
    first, second = gamma(half, generator), gamma(half, generator)
    return first / (first + second)
