r"""The direction of a multivariate t vector: an angular Gaussian with heavy tails.

For X ~ t_ν(κμ, I), integrate over the radius r in s = log(r/√(ν + κ²)). With b = κt/√(ν + κ²),
n = (ν + d)/2 and δ = (d - ν)/2,

    g(t) = (1 + κ²/ν)^{-ν/2} J(b)/J(0),   J(b) = ∫ exp(δs) (cosh s - b)^{-n} ds.

The peak is at s* = log(d/ν)/2 - asinh(δb/√(νd)). With s = s* + u and C = cosh s* - b, the exponent
relative to the peak is δu - n log(1 + 2 (cosh s*/C) sinh²(u/2) + (δ/n) sinh u). It is accurate for
ν from 0.1 (below, the tails leave the nodes) to 1e8 (above, digits cancel).
"""

from typing import Self

import torch
from torch import Tensor
from torch.distributions import constraints

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import ArrayLike, as_float_tensor, broadcast_shapes
from sterad.sphere.fit import Fit
from sterad.sphere.law import LAWS, SphericalLaw
from sterad.sphere.quadrature import peak_nodes
from sterad.sphere.weighted_points import WeightedPoints
from sterad.torch_private import standard_gamma

DEFAULT_DF = 3.0
"""Degrees of freedom if none are given: heavy tails, but a finite variance."""


def _log_radial(b: Tensor, gap: Tensor, df: Tensor, dimension: int) -> Tensor:
    """Return log J(b), differentiable in b and ν; `gap` is 1 - b, computed without cancellation."""
    n, delta = ((df + dimension) / 2).unsqueeze(-1), ((dimension - df) / 2).unsqueeze(-1)
    b_value = b.detach().unsqueeze(-1)
    log_terms, s, distance = _terms(b_value, gap.detach().unsqueeze(-1), n.detach(), delta.detach())
    # Zero in value; it only adds the derivatives.
    exponent = delta * s - n * torch.log(distance - (b.unsqueeze(-1) - b_value))
    return torch.logsumexp(log_terms + (exponent - exponent.detach()), dim=-1)


def _terms(b: Tensor, gap: Tensor, n: Tensor, delta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log terms of the integral at its nodes s, the nodes, and cosh s - b."""
    # With few degrees of freedom the peak is wide relative to the strip of analyticity, which the
    # error bound of the trapezoidal rule depends on: the step must be small.
    nodes, log_weights = peak_nodes(-28.0, 28.0, 0.15, b.device)
    dimension, df = n + delta, n - delta
    peak = torch.log(dimension / df) / 2 - torch.asinh(delta * b / torch.sqrt(df * dimension))
    top = 2 * torch.sinh(peak / 2).square() + gap
    sharpness = torch.cosh(peak) / top
    width = torch.rsqrt(n * (sharpness - (delta / n).square()))
    # sinh overflows beyond 710; at 600 the terms are already zero for ν of 0.1 and more.
    u = (nodes * width).clamp(-600, 600)
    growth = 2 * sharpness * torch.sinh(u / 2).square() + delta / n * torch.sinh(u)
    height = delta * peak - n * top.log()
    log_terms = height + delta * u - n * torch.log1p(growth) + log_weights + width.log()
    return log_terms, peak + u, top * (1 + growth)


@LAWS.register("projected-student-t", alias=("student-t",))
class ProjectedStudentT(SphericalLaw):
    """The direction of X ~ t_df(κμ, I); the angular Gaussian as df grows.

    >>> law = ProjectedStudentT(torch.eye(3, dtype=torch.float64)[0], 1.0, 1.0)
    >>> round(law.log_kernel(torch.tensor(0.5, dtype=torch.float64)).item(), 12)
    0.218780176602
    """

    arg_constraints = {**SphericalLaw.arg_constraints, "df": constraints.positive}  # noqa: RUF012
    df: Tensor

    def __init__(
        self,
        mean_direction: ArrayLike,
        concentration: ArrayLike,
        df: ArrayLike,
        validate_args: bool | None = None,
    ) -> None:
        mean_direction = as_float_tensor("mean_direction", mean_direction)
        degrees = as_float_tensor("df", df, mean_direction)
        kappa = as_float_tensor("concentration", concentration, mean_direction)
        if self._validate_args if validate_args is None else validate_args:
            _require_degrees(degrees)
        kappa = kappa.expand(broadcast_shapes(kappa.shape, degrees.shape))
        self.df = degrees.expand(broadcast_shapes(kappa.shape, mean_direction.shape[:-1]))
        super().__init__(mean_direction, kappa, validate_args=validate_args)

    @staticmethod
    def log_kernel_at(
        cosine: Tensor,
        concentration: Tensor,
        dimension: int,
        df: Tensor | float = DEFAULT_DF,
    ) -> Tensor:
        """Return log(J(b)/J(0)) - (ν/2) log(1 + κ²/ν)."""
        degrees = torch.as_tensor(df, dtype=torch.float64, device=cosine.device)
        zero = torch.zeros_like(degrees)
        at_zero = _log_radial(zero, 1 - zero, degrees, dimension)
        shape = broadcast_shapes(cosine.shape, concentration.shape, degrees.shape)
        cosine, kappa, degrees = (x.expand(shape) for x in (cosine, concentration, degrees))
        root = torch.sqrt(degrees + kappa.square())
        b = kappa * cosine / root
        near = degrees + kappa.square() * (1 - cosine) * (1 + cosine)
        gap = torch.where(b > 0, near / (root * (root + kappa * cosine.abs())), 1 - b)
        change = _log_radial(b, gap, degrees, dimension) - at_zero
        log_kernel: Tensor = change - degrees / 2 * torch.log1p(kappa.square() / degrees)
        return log_kernel

    def _log_kernel(self, cosine: Tensor) -> Tensor:
        kappa = to_double(self.concentration)
        return self.log_kernel_at(cosine, kappa, self.dimension, to_double(self.df))

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 1/σ for X ~ t_df(μ, σ²I) with a mean of unit length."""
        return float(variance**-0.5)

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        df = shape.get("df", DEFAULT_DF)
        _require_degrees(torch.tensor(df, dtype=torch.float64))
        return super()._fit(data, df=df)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        mean = to_double(self.concentration).unsqueeze(-1) * to_double(self.mean_direction)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=mean.device)
        half = (to_double(self.df) / 2).expand(shape[:-1])
        shrink = torch.sqrt(standard_gamma(half, generator) / half).unsqueeze(-1)
        # κμ + noise/shrink has the same direction as shrink·κμ + noise.
        point = torch.nn.functional.normalize(shrink * mean + noise, dim=-1)
        return point.to(self.mean_direction)


def _require_degrees(df: Tensor) -> None:
    valid = (df > 0) & df.isfinite()
    if not bool(valid.all()):
        raise SteradError(
            f"df is {float(df.detach()[~valid].flatten()[0]):.6g}, but must be finite and above 0: "
            "for infinite df use AngularGaussian"
        )
