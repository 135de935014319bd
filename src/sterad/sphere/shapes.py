"""Batch shapes, as torch broadcasts them."""

from typing import Any, cast

import torch


def broadcast(*shapes: torch.Size) -> torch.Size:
    """Return the common shape.

    >>> broadcast(torch.Size([3, 1]), torch.Size([4]))
    torch.Size([3, 4])
    """
    return cast(torch.Size, cast(Any, torch.broadcast_shapes)(*shapes))
