"""Arrays, labels and weights as users and scikit-learn pass them to a classifier.

The messages contain the phrases that scikit-learn's estimator checks look for.
"""

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sterad.data.arrays import as_inputs
from sterad.errors import SteradError
from sterad.labels import to_python_labels
from sterad.sphere.estimator_conventions import column_names, describe_difference

Arrays = npt.ArrayLike | Tensor
Array = npt.NDArray[Any]


class InputTypeError(SteradError, TypeError):
    """An input of a type that cannot be converted to numbers."""


@dataclass(frozen=True)
class InputFormat:
    """What the first call fixed: the shape of one input and the names of its columns."""

    shape: tuple[int, ...]
    names: tuple[str, ...] | None = None

    def check(self, inputs: Array, names: tuple[str, ...] | None) -> None:
        """Refuse feature vectors of another length, and other names of columns."""
        if names is not None and self.names is not None and names != self.names:
            raise SteradError(describe_difference(names, self.names))
        if (names is None) != (self.names is None) and len(self.shape) == 1:
            with_names = "does not have valid" if names is None else "has"
            fitted = "with" if names is None else "without"
            warnings.warn(
                f"X {with_names} feature names, but OnlineClassifier was fitted {fitted} "
                "feature names",
                stacklevel=5,
            )
        if len(self.shape) == inputs.ndim - 1 == 1 and inputs.shape[1] != self.shape[0]:
            raise SteradError(
                f"X has {inputs.shape[1]} features, but OnlineClassifier is expecting "
                f"{self.shape[0]} features as input: give those of the first call"
            )


def check_inputs(x: Any) -> tuple[Array, tuple[str, ...] | None]:
    """Return images (n, c, h, w) uint8 or vectors (n, d) float32, and the names of the columns."""
    if hasattr(x, "tocsr"):
        raise InputTypeError(
            "the inputs are a sparse matrix, which is not supported: pass x.toarray(), or reduce "
            "the number of features before"
        )
    names = column_names(x)
    values = x if isinstance(x, Tensor) else _to_numbers(x)
    if values.ndim < 2:
        kind = "1D" if values.ndim else "scalar"
        raise SteradError(
            f"Expected 2D array, got {kind} array instead: give images or rows of features. "
            "Reshape your data with array.reshape(-1, 1) if it has a single feature, or with "
            "array.reshape(1, -1) if it is a single sample"
        )
    if values.ndim == 2 and values.shape[1] == 0:
        raise SteradError(
            f"the inputs have 0 feature(s) (shape={tuple(values.shape)}) while a minimum of 1 is "
            "required: give at least one column"
        )
    try:
        return as_inputs(values), names
    except SteradError as error:
        raise SteradError(str(error).replace("contain nan ", "contain NaN ")) from error


def check_labels(y: Any) -> list[int | str]:
    """Return labels as Python integers or strings.

    Floats that are whole numbers become integers; a column (n, 1) is flattened with a warning.
    """
    if y is None:
        raise SteradError(
            "this classifier requires y to be passed, but the target y is None: give one label "
            "per image"
        )
    array = y if isinstance(y, list | tuple) else _as_array(y.cpu() if isinstance(y, Tensor) else y)
    if isinstance(array, np.ndarray) and array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: pass y.ravel()",
            _conversion_warning(),
            stacklevel=4,
        )
        array = array.ravel()
    if isinstance(array, np.ndarray) and array.dtype == object:
        array = array.tolist()  # numpy finds the type of the values
    elif isinstance(array, np.ndarray) and array.dtype.kind == "f" and _are_whole(array):
        array = array.astype(np.int64)
    try:
        return to_python_labels(array)
    except SteradError as error:
        if "labels are of type" not in str(error):
            raise
        raise SteradError(f"Unknown label type: {error}") from error


def check_weights(weights: Any, rows: int) -> npt.NDArray[np.int64] | None:
    """Return how often each row is learned: whole numbers (n,), or None for once."""
    if weights is None:
        return None
    values = _to_numbers(weights.numpy() if isinstance(weights, Tensor) else weights)
    if values.shape != (rows,):
        raise SteradError(
            f"sample_weight has shape {values.shape} and there are {rows} rows: give one weight "
            "per row"
        )
    if not (np.isfinite(values).all() and (values >= 0).all() and (values % 1 == 0).all()):
        raise SteradError(
            "sample_weight contains a number that is negative or not whole: a weight is the "
            "number of times that a row is learned, and 0 leaves it out"
        )
    if not values.any():
        raise SteradError("sample_weight is zero for all rows: nothing would be learned")
    return values.astype(np.int64)


def _to_numbers(x: Any) -> Array:
    """Return an array; objects are converted to floats."""
    values = _as_array(x)
    if values.dtype.kind == "c":
        raise SteradError("Complex data not supported: give real numbers")
    if values.dtype != object or values.ndim < 2:
        return values
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"the inputs are no numbers ({error}): give numbers") from error


def _are_whole(values: Array) -> bool:
    """Return whether all floats are integers that floats represent exactly."""
    return bool((np.abs(values) < 2**53).all() and (values % 1 == 0).all())  # False for NaN


def _as_array(values: Any) -> Array:
    try:
        return np.asarray(values)
    except Exception as error:  # numpy converts objects with their own code
        raise SteradError(
            f"images cannot be converted to one array ({error}): give all of them the same shape"
        ) from error


def _conversion_warning() -> type[Warning]:
    """Return scikit-learn's warning where scikit-learn is in use."""
    module = sys.modules.get("sklearn.exceptions")
    return UserWarning if module is None else module.DataConversionWarning
