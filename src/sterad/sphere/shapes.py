"""Batch shapes, as torch broadcasts them."""

import torch


def broadcast(*shapes: torch.Size) -> torch.Size:
    """Return the common shape.

    >>> broadcast(torch.Size([3, 1]), torch.Size([4]))
    torch.Size([3, 4])
    """
    shape: torch.Size = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return shape
