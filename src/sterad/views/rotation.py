"""Rotation: sixteen variants of an image by turning its halves and the whole, as OCM shows them."""

import torch
from torch import Tensor

FOLD = 16
"""Variants of each image."""
QUARTERS = (0, 2, 1, 3)
"""Quarter turns of the whole image, counter-clockwise, in the order of the blocks."""


def sixteenfold(x: Tensor) -> Tensor:
    """Return all variants of x: (n, c, s, s) as (16 n, c, s, s), block after block of n.

    Block 4 g + j: inner variant j, turned as a whole by the g-th of 0°, 180°, 90°, 270°. Inner
    variants: the image itself, its left half turned by 180° in place, both halves, its right half.

    >>> sixteenfold(torch.tensor([[[[1, 2], [3, 4]]]]))[:8].flatten(1)[[0, 1, 2, 3, 4]]
    tensor([[1, 2, 3, 4],
            [3, 2, 1, 4],
            [3, 4, 1, 2],
            [1, 4, 3, 2],
            [4, 3, 2, 1]])
    """
    left, right = x.tensor_split(2, dim=3)
    turned_left, turned_right = left.flip(2, 3), right.flip(2, 3)
    halves = (
        (left, right),
        (turned_left, right),
        (turned_left, turned_right),
        (left, turned_right),
    )
    inner = torch.cat([torch.cat(pair, dim=3) for pair in halves])
    return torch.cat([inner.rot90(quarters, (2, 3)) for quarters in QUARTERS])
