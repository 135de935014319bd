"""Images to another size: each new pixel is the mean of the area that it covers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sterad.errors import SteradError

LARGEST_FACTOR = 4
"""Beyond this, larger images would only repeat their pixels."""


def area_resize(images: npt.NDArray[Any], size: int | None) -> npt.NDArray[Any]:
    """Return images (n, c, h, h) as uint8 (n, c, size, size); unchanged where size is None or h.

    >>> checks = np.array([[0, 0, 8, 8], [0, 8, 8, 8], [0, 0, 0, 0], [4, 4, 4, 4]], np.uint8)
    >>> area_resize(checks[None, None], 2)[0, 0]
    array([[2, 8],
           [2, 2]], dtype=uint8)
    """
    if size is None or images.shape[-1] == size:
        return images
    if images.ndim != 4:
        raise SteradError("image_size is for images, and these are feature vectors: leave it out")
    side = images.shape[-1]
    if size > LARGEST_FACTOR * side:
        raise SteradError(
            f"image_size {size} is more than {LARGEST_FACTOR} times the {side} pixels of these "
            f"images: give at most {LARGEST_FACTOR * side}"
        )
    shares = area_shares(side, size)
    means = shares @ images.astype(np.float32) @ shares.T
    # Ties go up by a margin wider than the rounding of float32: the same bytes on every machine.
    resized: npt.NDArray[np.uint8] = np.floor(means + np.float32(0.501)).astype(np.uint8)
    return resized


def area_shares(side: int, size: int) -> npt.NDArray[np.float32]:
    """Return the share of each old pixel in each new one along one axis: (size, side).

    >>> area_shares(4, 3).astype(float).round(2).tolist()
    [[0.75, 0.25, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.25, 0.75]]
    """
    new = np.arange(size + 1) * (side / size)
    old = np.arange(side + 1)
    overlap = np.minimum(new[1:, None], old[1:]) - np.maximum(new[:-1, None], old[:-1])
    shares: npt.NDArray[np.float32] = (overlap.clip(min=0) * (size / side)).astype(np.float32)
    return shares
