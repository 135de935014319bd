"""What a law on the sphere may be given: unit vectors, and concentrations that are finite."""

import math
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint

from sterad.errors import SteradError

ArrayLike = Tensor | npt.NDArray[Any] | list[Any] | float
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-5}
"""How far a length may be from one; float64 allows for vectors normalized in float32."""


class _UnitSphere(Constraint):
    """Vectors of length one, of two dimensions or more."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        length: Tensor = torch.linalg.vector_norm(value, dim=-1)
        return (length - 1).abs() <= TOLERANCE.get(value.dtype, 1e-2)

    def __repr__(self) -> str:
        return "UnitSphere()"


class _FiniteNonnegative(Constraint):
    """Numbers from zero up, without infinity."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0) & value.isfinite()

    def __repr__(self) -> str:
        return "FiniteNonnegative()"


class _FinitePositive(Constraint):
    """Numbers above zero, without infinity."""

    def check(self, value: Tensor) -> Tensor:
        return (value > 0) & value.isfinite()

    def __repr__(self) -> str:
        return "FinitePositive()"


unit_sphere = _UnitSphere()
finite_positive = _FinitePositive()
finite_nonnegative = _FiniteNonnegative()


def as_vectors(name: str, given: ArrayLike, like: Tensor | None = None) -> Tensor:
    """Return an argument as floats: a tensor as it is, a list or array as torch reads it.

    like: a tensor whose type and device it takes.
    """
    dtype, device = (None, None) if like is None else (like.dtype, like.device)
    try:
        vectors = torch.as_tensor(given, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise SteradError(
            f"{name} is of type {type(given).__name__} and holds no numbers ({error}): "
            "give a tensor, an array, a list or a number"
        ) from error
    if vectors.is_complex():
        raise SteradError(f"{name} is complex: give real numbers")
    return vectors if vectors.is_floating_point() else vectors.to(torch.get_default_dtype())


def require_dimension(dimension: int) -> None:
    """Refuse a sphere without directions to choose from."""
    if dimension < 2:
        raise SteradError(
            f"the dimension is {dimension}, but a law on the unit sphere needs 2 or more: "
            "give vectors with at least two coordinates"
        )


def require_unit(name: str, vectors: Tensor) -> None:
    """Refuse `vectors` that are not of unit length, naming the worst of them."""
    bad = ~unit_sphere.check(vectors)
    if bool(bad.any()):
        length = float(torch.linalg.vector_norm(vectors.detach(), dim=-1)[bad].flatten()[0])
        if not math.isfinite(length):
            raise SteradError(f"{name} holds NaN or infinite values: check how it was computed")
        raise SteradError(
            f"{name} has length {length:.6g}, but must lie on the unit sphere: "
            "divide it by its length (torch.nn.functional.normalize)"
        )


def require_points(law: Distribution, value: Tensor) -> None:
    """Refuse a value that does not fit the law or lies off the sphere, if the law validates."""
    if law._validate_args:
        if value.shape[-1:] == law.event_shape:
            require_unit("value", value)
        law._validate_sample(value)


def require_concentration(concentration: Tensor) -> None:
    """Refuse a concentration that is negative, infinite or NaN."""
    good = finite_nonnegative.check(concentration)
    if not bool(good.all()):
        value = float(concentration.detach()[~good].flatten()[0])
        remedy = "reverse the mean direction instead" if value < 0 else "check how it was computed"
        raise SteradError(
            f"concentration is {value:.6g}, but must be finite and at least 0: {remedy}"
        )
