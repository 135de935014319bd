"""Functions on arrays of images, feature vectors and labels: convert, resize and hash them."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sterad.errors import SteradError

Array = npt.NDArray[Any]
ByteArray = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

MAX_UPSCALE = 4
"""Largest factor by which images are enlarged; a larger one would only repeat pixels."""
ROWS_PER_HASH_UPDATE = 4096
"""Rows hashed at once, so that a memory-mapped array is never loaded completely."""


def as_inputs(array: object, what: str = "images") -> Array:
    """Return images as uint8 (N, c, h, w), or feature vectors as float32 (N, d).

    Images are uint8 or floats in [0, 1], of shape (N, h, w), (N, c, h, w) or (N, h, w, c) with
    c in {1, 3}; where both axes can be the channels, the square reading counts. Feature vectors are
    numbers of shape (N, d). `what` names the array in messages.
    """
    values = _as_numpy(array, what)
    if values.ndim == 2:
        return _as_vectors(values, what)
    return np.ascontiguousarray(_to_channels_first(_as_uint8(values, what), what))


def as_labels(array: object, what: str = "labels") -> IntArray:
    """Return integer labels as int64 (N,)."""
    values = _as_numpy(array, what)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise SteradError(
            f"{what} are {values.dtype} of shape {values.shape}: give integers of shape (N,), "
            "one per image"
        )
    return values.astype(np.int64)


def _as_numpy(array: object, what: str) -> Array:
    if isinstance(array, torch.Tensor):
        tensor = array.detach().cpu()
        # numpy has no bfloat16.
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    try:
        return np.asarray(array)
    except ValueError as error:
        raise SteradError(
            f"{what} cannot be converted to one array ({error}): give all of them the same shape"
        ) from error


def _as_vectors(values: Array, what: str) -> FloatArray:
    if values.dtype.kind not in "iuf":
        raise SteradError(f"{what} are of type {values.dtype}: give numbers of shape (N, d)")
    with np.errstate(over="ignore"):  # an overflow becomes infinite and is reported below
        vectors = np.ascontiguousarray(values, dtype=np.float32)
    _check_values(~np.isfinite(vectors), values, what, "must be finite in float32: rescale")
    return vectors


def _as_uint8(values: Array, what: str) -> ByteArray:
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind != "f":
        remedies = {
            "uint16": "divide 16-bit values by 65535",
            "bool": "convert them with astype(float)",
        }
        remedy = remedies.get(
            values.dtype.name, "convert values from 0 to 255 with astype(np.uint8)"
        )
        raise SteradError(
            f"{what} are of type {values.dtype}: give uint8 from 0 to 255, or floats in [0, 1]; "
            f"{remedy}"
        )
    inside = (values >= 0) & (values <= 1)  # False for NaN
    _check_values(~inside, values, what, "must be in [0, 1]: divide by 255 or rescale")
    pixels: ByteArray = np.rint(values * 255).astype(np.uint8)
    return pixels


def _check_values(invalid: npt.NDArray[np.bool_], values: Array, what: str, rule: str) -> None:
    if invalid.any():
        at = np.unravel_index(int(invalid.argmax()), invalid.shape)
        rule = rule if np.isfinite(values[at]) else "must be finite: replace the value"
        raise SteradError(
            f"{what} contain {values[at]} at index {int(at[0])} and {rule}, or remove that one"
        )


def _to_channels_first(images: ByteArray, what: str) -> ByteArray:
    if images.ndim == 3:
        return images[:, None]
    shape = images.shape
    first = images.ndim == 4 and shape[1] in (1, 3)
    last = images.ndim == 4 and shape[3] in (1, 3)
    if first and last:
        first, last = shape[2] == shape[3], shape[1] == shape[2]
        if first == last and shape != (len(images), 1, 1, 1):
            raise SteradError(
                f"{what} of shape {shape} are ambiguous, channels can be first or last: construct "
                "Dataset directly with uint8 (N, c, h, w)"
            )
    if not (first or last):
        raise SteradError(f"{what} have shape {shape}: {_shape_remedy(shape)}")
    return images if first else np.moveaxis(images, 3, 1)


def _shape_remedy(shape: tuple[int, ...]) -> str:
    if len(shape) == 4 and 4 in (shape[1], shape[3]):
        three = "x[:, :3]" if shape[1] == 4 else "x[..., :3]"
        return (
            "four channels are red, green, blue and alpha, or CMYK: convert them to three, for "
            f"example with {three} if all pixels are opaque"
        )
    return (
        "give images as (N, h, w), (N, c, h, w) or (N, h, w, c) with 1 or 3 channels, or feature "
        "vectors as (N, d)"
    )


def area_resize(images: Array, size: int | tuple[int, int] | None) -> Array:
    """Resize images (n, c, h, w) to uint8 (n, c, height, width) by averaging areas.

    size: height and width, or one number for both. Each new pixel is the mean of the area that it
    covers. Images are returned unchanged if they have this size, or if size is None.

    >>> image = np.array([[0, 0, 8, 8], [0, 8, 8, 8], [0, 0, 0, 0], [4, 4, 4, 4]], np.uint8)
    >>> area_resize(image[None, None], 2)[0, 0]
    array([[2, 8],
           [2, 2]], dtype=uint8)
    """
    if size is None:
        return images
    if images.ndim != 4:
        raise SteradError(
            f"image_size {size} is set, but the inputs are feature vectors: omit image_size"
        )
    sizes = (size, size) if isinstance(size, int) else size
    if images.shape[2:] == sizes:
        return images
    for name, old, new in zip(("image_size", "image_width"), images.shape[2:], sizes, strict=True):
        if new > MAX_UPSCALE * old:
            option = "image_size" if sizes[0] == sizes[1] else name
            raise SteradError(
                f"{option} {new} is more than {MAX_UPSCALE} times the {old} pixels of these "
                f"images: give at most {MAX_UPSCALE * old}"
            )
    rows, columns = map(area_weights, images.shape[2:], sizes)
    means = rows @ images.astype(np.float32) @ columns.T
    # Round ties up with a margin larger than float32 rounding errors: all machines agree.
    resized: ByteArray = np.floor(means + np.float32(0.501)).astype(np.uint8)
    return resized


def area_weights(side: int, size: int) -> FloatArray:
    """Return the weight of each old pixel in each new pixel along one axis: (size, side).

    >>> area_weights(4, 3).astype(float).round(2).tolist()
    [[0.75, 0.25, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.25, 0.75]]
    """
    new = np.arange(size + 1) * (side / size)
    old = np.arange(side + 1)
    overlap = np.minimum(new[1:, None], old[1:]) - np.maximum(new[:-1, None], old[:-1])
    weights: FloatArray = (overlap.clip(min=0) * (size / side)).astype(np.float32)
    return weights


def array_digest(array: Array) -> str:
    """Return the SHA-256 of the dtype, shape and values of an array."""
    digest = hashlib.sha256(array_header(array.dtype, array.shape))
    for start in range(0, len(array), ROWS_PER_HASH_UPDATE):
        digest.update(array_bytes(array[start : start + ROWS_PER_HASH_UPDATE]))
    return digest.hexdigest()


def array_header(dtype: np.dtype[Any], shape: Iterable[int]) -> bytes:
    """Return the bytes that precede the values in `array_digest`."""
    return f"{dtype.str} {tuple(shape)}".encode()


def array_bytes(array: Array) -> memoryview:
    """Return the bytes of an array in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def content_digest(arrays: Mapping[str, str], class_names: Iterable[str]) -> str:
    """Return one hash, 16 hex digits, of the digests of named arrays and the class names."""
    text = repr((sorted(arrays.items()), list(class_names)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
