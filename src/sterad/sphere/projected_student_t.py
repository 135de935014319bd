r"""The direction of a multivariate t vector: an angular Gaussian with heavy tails.

For X ~ t_ν(κμ, I) the radius integrates out in s = log(r/√(ν + κ²)): with b = κt/√(ν + κ²),
n = (ν + d)/2 and δ = (d - ν)/2,

    g(t) = (1 + κ²/ν)^{-ν/2} J(b)/J(0),   J(b) = ∫ exp(δs) (cosh s - b)^{-n} ds.

The peak is at s* = log(d/ν)/2 - asinh(δb/√(νd)); about it, with C = cosh s* - b, the exponent is
δu - n log(1 + 2 (cosh s*/C) sinh²(u/2) + (δ/n) sinh u).
"""

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere.constraints import ArrayLike, as_vectors, finite_positive
from sterad.sphere.draw import gamma
from sterad.sphere.law import LAWS, SphericalLaw
from sterad.sphere.quadrature import peak_nodes
from sterad.sphere.shapes import broadcast

DEFAULT_DF = 3.0
"""Degrees of freedom where a law is named without them: heavy tails, a finite variance."""


def _log_radial(b: Tensor, gap: Tensor, df: Tensor, dimension: int) -> Tensor:
    """Return log J(b), `gap` being 1 - b without cancellation, with all derivatives in b and ν."""
    n, delta = ((df + dimension) / 2).unsqueeze(-1), ((dimension - df) / 2).unsqueeze(-1)
    still = b.detach().unsqueeze(-1)
    log_terms, s, distance = _peak(still, gap.detach().unsqueeze(-1), n.detach(), delta.detach())
    exponent = delta * s - n * torch.log(distance - (b.unsqueeze(-1) - still))
    return torch.logsumexp(log_terms + (exponent - exponent.detach()), dim=-1)


def _peak(b: Tensor, gap: Tensor, n: Tensor, delta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the integrand about its peak as (log terms, s, cosh s - b)."""
    # Few degrees of freedom make the peak wide against the strip of analyticity: a small step.
    nodes, log_weights = peak_nodes(-28.0, 28.0, 0.15, b.device)
    dimension, df = n + delta, n - delta
    peak = torch.log(dimension / df) / 2 - torch.asinh(delta * b / torch.sqrt(df * dimension))
    top = 2 * torch.sinh(peak / 2).square() + gap
    sharpness = torch.cosh(peak) / top
    width = torch.rsqrt(n * (sharpness - (delta / n).square()))
    # Beyond 600 the terms are zero at any df that has a meaning, and sinh would overflow.
    u = (nodes * width).clamp(-600, 600)
    rise = 2 * sharpness * torch.sinh(u / 2).square() + delta / n * torch.sinh(u)
    height = delta * peak - n * top.log()
    log_terms = height + delta * u - n * torch.log1p(rise) + log_weights + width.log()
    return log_terms, peak + u, top * (1 + rise)


@LAWS.register("projected-student-t", alias=("student-t",))
class ProjectedStudentT(SphericalLaw):
    """The direction of X ~ t_df(κμ, I); the angular Gaussian as df grows.

    >>> law = ProjectedStudentT(torch.eye(3, dtype=torch.float64)[0], 1.0, 1.0)
    >>> round(law.log_kernel(torch.tensor(0.5, dtype=torch.float64)).item(), 12)
    0.218780176602
    """

    arg_constraints = {**SphericalLaw.arg_constraints, "df": finite_positive}  # noqa: RUF012
    has_rsample = True
    df: Tensor

    def __init__(
        self,
        mean_direction: ArrayLike,
        concentration: ArrayLike,
        df: ArrayLike,
        validate_args: bool | None = None,
    ) -> None:
        mean_direction = as_vectors("mean_direction", mean_direction)
        degrees = as_vectors("df", df, mean_direction)
        kappa = as_vectors("concentration", concentration, mean_direction)
        if self._validate_args if validate_args is None else validate_args:
            _require_degrees(degrees)
        kappa = kappa.expand(broadcast(kappa.shape, degrees.shape))
        self.df = degrees.expand(broadcast(kappa.shape, mean_direction.shape[:-1]))
        super().__init__(mean_direction, kappa, validate_args=validate_args)

    @staticmethod
    def log_kernel_at(
        cosine: Tensor,
        concentration: Tensor,
        dimension: int,
        df: Tensor | float = DEFAULT_DF,
    ) -> Tensor:
        """Return the log ratio of the radial integrals at this cosine and at zero concentration."""
        degrees = torch.as_tensor(df, dtype=torch.float64, device=cosine.device)
        zero = torch.zeros_like(degrees)
        at_zero = _log_radial(zero, 1 - zero, degrees, dimension)
        shape = broadcast(cosine.shape, concentration.shape, degrees.shape)
        cosine, kappa, degrees = (x.expand(shape) for x in (cosine, concentration, degrees))
        root = torch.sqrt(degrees + kappa.square())
        b = kappa * cosine / root
        near = degrees + kappa.square() * (1 - cosine) * (1 + cosine)
        gap = torch.where(b > 0, near / (root * (root + kappa * cosine.abs())), 1 - b)
        change = _log_radial(b, gap, degrees, dimension) - at_zero
        log_kernel: Tensor = change - degrees / 2 * torch.log1p(kappa.square() / degrees)
        return log_kernel

    def _log_kernel(self, cosine: Tensor) -> Tensor:
        kappa = self.concentration.double()
        return self.log_kernel_at(cosine, kappa, self.dimension, self.df.double())

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 1/σ for X ~ t_df(μ, σ²I) with a mean of unit length.

        >>> ProjectedStudentT.concentration_of(4.0)
        0.5
        """
        return float(variance**-0.5)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        mean = self.concentration.double().unsqueeze(-1) * self.mean_direction.double()
        noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=mean.device)
        half = (self.df.double() / 2).expand(shape[:-1])
        shrink = torch.sqrt(gamma(half, generator) / half).unsqueeze(-1)
        # The direction of κμ + noise/shrink is that of shrink·κμ + noise.
        point = torch.nn.functional.normalize(shrink * mean + noise, dim=-1)
        return point.to(self.mean_direction.dtype)


def _require_degrees(df: Tensor) -> None:
    good = finite_positive.check(df)
    if not bool(good.all()):
        raise SteradError(
            f"df is {float(df.detach()[~good].flatten()[0]):.6g}, but must be finite and above 0: "
            "for df without bound use AngularGaussian"
        )
