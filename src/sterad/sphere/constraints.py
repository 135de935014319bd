"""Arguments of laws on the sphere: conversion, batch shapes, constraints and checks."""

import math
from typing import Any, cast

import numpy.typing as npt
import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint

from sterad.errors import SteradError

ArrayLike = Tensor | npt.NDArray[Any] | list[Any] | float
LENGTH_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-5}
"""Largest accepted |length - 1|; in float64 it also accepts vectors normalized in float32."""
HALF_TOLERANCE = 1e-2
"""The same for float16 and bfloat16."""


class _UnitSphere(Constraint):
    """Vectors of length one."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        length: Tensor = torch.linalg.vector_norm(value, dim=-1)
        return (length - 1).abs() <= LENGTH_TOLERANCE.get(value.dtype, HALF_TOLERANCE)


unit_sphere = _UnitSphere()


def as_float_tensor(name: str, value: ArrayLike, like: Tensor | None = None) -> Tensor:
    """Return an argument as a floating-point tensor, with the dtype and device of `like` if given.

    `name` is the name of the argument in messages.
    """
    dtype, device = (None, None) if like is None else (like.dtype, like.device)
    try:
        tensor = torch.as_tensor(value, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise SteradError(
            f"{name} is of type {type(value).__name__} and holds no numbers ({error}): "
            "give a tensor, an array, a list or a number"
        ) from error
    if tensor.is_complex():
        raise SteradError(f"{name} is complex: give real numbers")
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def broadcast_shapes(*shapes: torch.Size) -> torch.Size:
    """Return the common batch shape.

    >>> broadcast_shapes(torch.Size([3, 1]), torch.Size([4]))
    torch.Size([3, 4])
    """
    try:
        return cast(torch.Size, cast(Any, torch.broadcast_shapes)(*shapes))
    except RuntimeError as error:
        listed = " and ".join(str(tuple(shape)) for shape in shapes)
        raise SteradError(
            f"parameters of batch shapes {listed} do not broadcast: give them one batch shape"
        ) from error


def require_dimension(dimension: int) -> None:
    """Raise if the sphere has fewer than two dimensions."""
    if dimension < 2:
        raise SteradError(
            f"the dimension is {dimension}, but a law on the unit sphere needs 2 or more: "
            "give vectors with at least two coordinates"
        )


def require_unit(name: str, vectors: Tensor) -> None:
    """Raise if a row of `vectors` is not of unit length."""
    invalid = ~unit_sphere.check(vectors)
    if bool(invalid.any()):
        length = float(torch.linalg.vector_norm(vectors.detach(), dim=-1)[invalid].flatten()[0])
        if not math.isfinite(length):
            raise SteradError(f"{name} holds NaN or infinite values: check how it was computed")
        raise SteradError(
            f"{name} has length {length:.6g}, but must lie on the unit sphere: "
            "divide it by its length (torch.nn.functional.normalize)"
        )


def require_points(law: Distribution, value: Tensor) -> None:
    """Raise if `value` has the wrong shape or is off the sphere, if the law validates."""
    if law._validate_args:
        if value.shape[-1:] == law.event_shape:
            require_unit("value", value)
        law._validate_sample(value)


def require_concentration(concentration: Tensor) -> None:
    """Raise if a concentration is negative, infinite or NaN."""
    valid = (concentration >= 0) & concentration.isfinite()
    if not bool(valid.all()):
        value = float(concentration.detach()[~valid].flatten()[0])
        remedy = "reverse the mean direction instead" if value < 0 else "check how it was computed"
        raise SteradError(
            f"concentration is {value:.6g}, but must be finite and at least 0: {remedy}"
        )
