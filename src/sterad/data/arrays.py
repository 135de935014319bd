"""The user's arrays as inputs and labels: numpy or torch, bytes or floats, channels anywhere."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sterad.errors import SteradError


def as_inputs(array: object, what: str = "images") -> npt.NDArray[Any]:
    """Return images as uint8 (N, c, h, w), or feature vectors as float32 (N, d).

    Accepted are uint8 or floats in [0, 1] of shape (N, h, w), (N, c, h, w) or (N, h, w, c) with
    c in {1, 3}, and numbers of shape (N, d). `what` names the array in messages.
    """
    values = _as_numpy(array, what)
    if values.ndim == 2:
        return _as_vectors(values, what)
    return np.ascontiguousarray(_channels_first(_as_bytes(values, what), what))


def as_labels(array: object, what: str = "labels") -> npt.NDArray[np.int64]:
    """Return integer labels as int64 (N,)."""
    values = _as_numpy(array, what)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise SteradError(
            f"{what} are {values.dtype} of shape {values.shape}: give integers of shape (N,), "
            "one per image"
        )
    return values.astype(np.int64)


def _as_numpy(array: object, what: str) -> npt.NDArray[Any]:
    if isinstance(array, torch.Tensor):
        tensor = array.detach().cpu()
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    try:
        return np.asarray(array)
    except ValueError as error:
        raise SteradError(
            f"{what} are not one array ({error}): give all of them one shape"
        ) from error


def _as_vectors(values: npt.NDArray[Any], what: str) -> npt.NDArray[np.float32]:
    if values.dtype.kind not in "iuf":
        raise SteradError(f"{what} are of type {values.dtype}: give numbers of shape (N, d)")
    with np.errstate(over="ignore"):  # becomes infinite, and is named below
        vectors = np.ascontiguousarray(values, dtype=np.float32)
    _refuse(~np.isfinite(vectors), values, what, "must be finite numbers of float32")
    return vectors


def _as_bytes(values: npt.NDArray[Any], what: str) -> npt.NDArray[np.uint8]:
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind != "f":
        raise SteradError(
            f"{what} are of type {values.dtype}: give uint8 from 0 to 255, or floats in [0, 1]"
        )
    inside = (values >= 0) & (values <= 1)  # false for NaN too
    _refuse(~inside, values, what, "must lie in [0, 1]: divide by 255 or scale")
    pixels: npt.NDArray[np.uint8] = np.rint(values * 255).astype(np.uint8)
    return pixels


def _refuse(bad: npt.NDArray[np.bool_], values: npt.NDArray[Any], what: str, rule: str) -> None:
    if bad.any():
        at = np.unravel_index(int(bad.argmax()), bad.shape)
        rule = rule if np.isfinite(values[at]) else "must be finite: replace the value"
        raise SteradError(
            f"{what} hold {values[at]} at index {int(at[0])} and {rule}, or drop that one"
        )


def _channels_first(images: npt.NDArray[np.uint8], what: str) -> npt.NDArray[np.uint8]:
    if images.ndim == 3:
        return images[:, None]
    shape = images.shape
    first = images.ndim == 4 and shape[1] in (1, 3) and shape[2] == shape[3]
    last = images.ndim == 4 and shape[3] in (1, 3) and shape[1] == shape[2]
    if first and last and shape[1] > 1:
        raise SteradError(
            f"{what} of shape {shape} can be read with channels first or last: make a Dataset "
            "with uint8 (N, c, h, w) yourself"
        )
    if not (first or last):
        raise SteradError(
            f"{what} have shape {shape}: give square images as (N, h, w), (N, c, h, w) or "
            "(N, h, w, c) with 1 or 3 channels, or feature vectors as (N, d)"
        )
    return images if first else np.moveaxis(images, 3, 1)
