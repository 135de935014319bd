"""Rows of points that are read in chunks: large arrays are never copied as a whole.

The messages contain the phrases that scikit-learn's estimator checks look for.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere.constraints import require_unit

CHUNK_NUMBERS = 2**18
"""Numbers in a chunk, 2 MB in float64: a chunk and its products stay in the cache of a core."""


SMALLEST_LENGTH = 1e-300
"""Largest coordinate of a row below which the row counts as zero: its inverse would overflow."""


class RowsTypeError(SteradError, TypeError):
    """An input of a type that cannot be converted to numbers."""


@dataclass(frozen=True)
class Rows:
    """Points (n, d) in their own dtype, and weights (n,) in float64.

    inverse_lengths: (n,) float64, by which rows are multiplied when they are read; None for rows
    that are of unit length. It is zero for rows of zeros, which have no direction: they have weight
    zero and are read as the first axis.
    """

    points: Tensor
    weights: Tensor
    inverse_lengths: Tensor | None = None

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point."""
        return self.points.shape[1]

    def __len__(self) -> int:
        return len(self.points)

    def chunks(self, width: int = 0) -> Iterator[tuple[slice, Tensor]]:
        """Yield the place and the float64 unit rows of each chunk.

        width: numbers that the caller computes per row, if they are more than the coordinates.
        """
        size = max(16, CHUNK_NUMBERS // max(self.dimension, width))
        for start in range(0, len(self), size):
            place = slice(start, min(start + size, len(self)))
            yield place, self._unit_rows(place)

    def row(self, index: int) -> Tensor:
        """Return one unit row in float64: (d,)."""
        return self._unit_rows(slice(index, index + 1))[0]

    @cached_property
    def unit_points(self) -> Tensor:
        """All unit rows in the dtype of the points: (n, d), a copy if they are scaled."""
        if self.inverse_lengths is None:
            return self.points
        return torch.cat([points.to(self.points.dtype) for _, points in self.chunks()])

    def _unit_rows(self, place: slice) -> Tensor:
        points = self.points[place].double()
        if self.inverse_lengths is None:
            return points
        points = points * self.inverse_lengths[place].unsqueeze(1)
        points[self.lacks_direction(place), 0] = 1
        return points

    def lacks_direction(self, place: slice) -> Tensor:
        """Return which rows are zero: (n,) bool."""
        if self.inverse_lengths is None:
            return torch.zeros(len(self.points[place]), dtype=torch.bool, device="cpu")
        return self.inverse_lengths[place] == 0


def read_rows(
    x: Any, weights: Any = None, normalize: bool = True, fitted_dimension: int | None = None
) -> Rows:
    """Return points (n, d) as rows after checking them and their weights.

    x: an array, tensor, list or data frame; float32 and float64 are not copied.
    fitted_dimension: the number of columns that they must have.
    """
    points = _as_points(x, fitted_dimension)
    masses = _as_weights(weights, len(points))
    size = max(1, CHUNK_NUMBERS // points.shape[1])
    # Written in place: small results between large chunks would fragment the heap.
    inverse_lengths = torch.empty(len(points), dtype=torch.float64, device="cpu")
    for start in range(0, len(points), size):
        part = points[start : start + size]
        inverse_lengths[start : start + size] = _inverse_lengths(part, start, normalize)
    if not normalize:
        return Rows(points, masses)
    return Rows(points, masses * (inverse_lengths > 0), inverse_lengths)


def warn_of_zero_rows(rows: Rows) -> None:
    """Warn if rows of zeros have no influence on a fit."""
    count = int(rows.lacks_direction(slice(None)).sum())
    if count:
        warnings.warn(
            f"{count} of {len(rows)} rows of X are zero and have no direction: they have no "
            "influence on the fit",
            stacklevel=3,
        )


def _as_points(x: Any, fitted_dimension: int | None) -> Tensor:
    if hasattr(x, "tocsr"):
        raise RowsTypeError(
            "X is a sparse matrix, which is not supported: pass X.toarray(), or reduce the number "
            "of features before"
        )
    points = x.detach().cpu() if isinstance(x, Tensor) else _tensor_of(_as_array(x))
    if points.is_complex():
        raise SteradError("Complex data not supported: give real numbers")
    if points.dim() != 2:
        raise SteradError(
            f"Expected 2D array, got {points.dim()}D array instead: give one point per row. "
            "Reshape your data with array.reshape(1, -1) if it is a single sample"
        )
    n, dimension = points.shape
    if fitted_dimension is not None and dimension != fitted_dimension:
        raise SteradError(
            f"X has {dimension} features, but SphericalMixture is expecting {fitted_dimension} "
            "features as input: give those of the fit"
        )
    if dimension < 2:
        raise SteradError(
            f"X has {dimension} feature(s) (shape={tuple(points.shape)}) while a minimum of 2 is "
            "required: points on a sphere have at least two coordinates"
        )
    if n == 0:
        raise SteradError(
            f"X has 0 sample(s) (shape={tuple(points.shape)}) while a minimum of 1 is required: "
            "give at least one row"
        )
    return points if points.dtype in (torch.float32, torch.float64) else points.double()


def _as_array(x: Any) -> np.ndarray[Any, np.dtype[Any]]:
    try:
        array = np.asarray(x)
        if array.dtype == object:
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise RowsTypeError(
            f"X cannot be converted to one array of numbers ({error}): give rows of equal length"
        ) from error
    if array.dtype.kind not in "fiubc":
        raise RowsTypeError(f"X holds values of type {array.dtype}: give numbers")
    return array


def _tensor_of(array: np.ndarray[Any, np.dtype[Any]]) -> Tensor:
    if array.dtype.kind == "f" and array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)  # float16 and long double; torch has no long double
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.as_tensor(array)  # only read, so read-only arrays are fine


def _as_weights(weights: Any, n: int) -> Tensor:
    if weights is None:
        return torch.ones(n, dtype=torch.float64, device="cpu")
    given = weights.detach().cpu() if isinstance(weights, Tensor) else np.asarray(weights)
    values = torch.as_tensor(given, dtype=torch.float64, device="cpu")
    if values.shape != (n,):
        raise SteradError(
            f"sample_weight has shape {tuple(values.shape)} and there are {n} rows: give one "
            "weight per row"
        )
    if not bool(values.isfinite().all() & (values >= 0).all()):
        raise SteradError(
            "sample_weight contains a number that is negative, infinite or NaN: give weights of "
            "at least 0"
        )
    if not bool(values.any()):
        raise SteradError("sample_weight is zero for all rows: give at least one positive weight")
    return values


def _inverse_lengths(points: Tensor, first: int, normalize: bool) -> Tensor:
    """Return 1/length of each row, 0 for rows of zeros, and refuse rows that are not finite."""
    largest = points.abs().amax(1).double()
    if not bool(largest.isfinite().all()):
        row = first + int((~largest.isfinite()).nonzero()[0])
        raise SteradError(
            f"row {row} of X contains NaN or inf (infinity): remove such rows or fill in the "
            "missing values"
        )
    if not normalize:
        require_unit("a row of X (with normalize=False)", points)
        return largest
    # Divided by the largest coordinate first, so that squares neither overflow nor underflow.
    is_zero = largest <= SMALLEST_LENGTH
    scaled = points.double() / largest.masked_fill(is_zero, 1).unsqueeze(1)
    lengths: Tensor = torch.linalg.vector_norm(scaled, dim=1) * largest
    return lengths.reciprocal().masked_fill(is_zero, 0)
