"""Batch shapes, as torch broadcasts them."""

from typing import Any, cast

import torch

from sterad.errors import SteradError


def broadcast(*shapes: torch.Size) -> torch.Size:
    """Return the common shape.

    >>> broadcast(torch.Size([3, 1]), torch.Size([4]))
    torch.Size([3, 4])
    """
    try:
        return cast(torch.Size, cast(Any, torch.broadcast_shapes)(*shapes))
    except RuntimeError as error:
        said = " and ".join(str(tuple(shape)) for shape in shapes)
        raise SteradError(
            f"parameters of batch shapes {said} do not broadcast: give them one batch shape"
        ) from error
