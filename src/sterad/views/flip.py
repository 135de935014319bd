"""Mirror images: left becomes right in a part of the batch."""

from torch import Tensor

from sterad.views.choice import choose


def flip(x: Tensor, chosen: Tensor) -> Tensor:
    """Mirror the chosen images of x: (n, c, h, w) left to right; chosen: (n,) bool."""
    return choose(x, x.flip(-1), chosen)
