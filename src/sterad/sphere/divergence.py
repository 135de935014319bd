"""Kullback-Leibler divergences between laws on one sphere.

Let c be the cosine of the two mean directions and t = tanh(s) the cosine of a point of p with its
own. The cosine with the other direction is tc + √(1 - t²) √(1 - c²) z, where z is the cosine of a
uniform point on the sphere of the tangent directions. E_p[log g_q] is an integral over s and z.
In artanh(z) every singularity of log g_q on the real line moves π/2 away. In s the panels become
shorter towards the points at which the plane meets the other direction and its opposite, where log
g_q may have a kink or a singularity (PowerSpherical).
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.distributions import register_kl
from torch.utils.checkpoint import checkpoint

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import broadcast_shapes
from sterad.sphere.cumulative import KernelTable
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.power_spherical import PowerSpherical
from sterad.sphere.quadrature import expectation, log_area, log_cosh, mass_interval, peak_nodes
from sterad.sphere.rotational_law import RotationalLaw
from sterad.sphere.uniform import Uniform
from sterad.sphere.von_mises_fisher import VonMisesFisher, log_cosine_mgf

EQUAL_PANELS = 40
LEVELS = 14
"""Panels on each side of a special point, each a quarter of the one before it."""
PANEL_NODES = 12
CIRCLE_REACH = 45.0
"""Largest |artanh(t)| on the circle: the mass beyond is exp(-45)."""
CHUNK_COSINES = 1 << 16
"""Cosines whose log kernel is evaluated at once."""


def require_one_sphere(p: SphereDistribution, q: SphereDistribution) -> None:
    """Raise if two laws are on spheres of different dimensions."""
    if p.dimension != q.dimension:
        raise SteradError(
            f"the laws are on spheres of {p.dimension} and {q.dimension} dimensions: a divergence "
            "needs two laws on one sphere"
        )


def panel_nodes(
    low: Tensor, high: Tensor, special: Tensor | None, panels: int = EQUAL_PANELS
) -> tuple[Tensor, Tensor]:
    """Return nodes and weights on [low, high], dense near ±special if given: (n, k) each."""
    even = torch.linspace(0, 1, panels + 1, dtype=torch.float64, device=low.device)
    levels = torch.arange(LEVELS, dtype=torch.float64, device=low.device)
    reach = torch.cat([4.0**-levels, torch.zeros_like(levels[:1])]).unsqueeze(-1) * (high - low)
    centers = () if special is None else (special, -special)
    near = [center + side * reach for center in centers for side in (-1, 1)]
    edges = torch.cat([low + (high - low) * even.unsqueeze(-1), *near])
    edges = torch.minimum(torch.maximum(edges, low), high).sort(0).values
    x, w = (
        torch.from_numpy(a).to(low.device) for a in np.polynomial.legendre.leggauss(PANEL_NODES)
    )
    half, middle = edges.diff(dim=0) / 2, (edges[1:] + edges[:-1]) / 2
    s = middle.unsqueeze(1) + half.unsqueeze(1) * x[:, None]
    return s.flatten(0, 1), (half.unsqueeze(1) * w[:, None]).flatten(0, 1)


def _tangent_nodes(dimension: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return nodes z and weights of the cosine of a uniform point in d - 1 dimensions."""
    if dimension == 2:
        z = torch.tensor([-1.0, 1.0], dtype=torch.float64, device=device)
        return z, torch.full_like(z, 0.5)
    p = dimension - 2
    nodes, log_weights = peak_nodes(-13.0, 13.0, 0.25, device)
    r = nodes * p**-0.5
    return torch.tanh(r), torch.softmax(log_weights - p * log_cosh(r), 0)


def _broadcast(p: RotationalLaw, q: RotationalLaw) -> tuple[RotationalLaw, RotationalLaw]:
    """Return both laws with one batch dimension."""
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    return p.expand(shape).flatten(), q.expand(shape).flatten()


def _relative_position(p: RotationalLaw, q: RotationalLaw) -> tuple[Tensor, Tensor]:
    """Return cosine and sine between the mean directions: (k,) each."""
    first, second = to_double(p.mean_direction), to_double(q.mean_direction)
    cosine = (first * second).sum(-1).clamp(-1, 1)
    # The lower bound keeps the derivative of the square root finite for equal directions.
    square = (second - cosine.unsqueeze(-1) * first).square().sum(-1)
    return cosine, square.clamp_min(1e-30).sqrt()


def mean_log_ratio(p: RotationalLaw, q: RotationalLaw) -> Tensor:
    """Return E_p[log p - log q] by quadrature, for laws with one batch dimension: (k,)."""
    if p.dimension == 2 and isinstance(q, PowerSpherical):
        return _ratio_to_power_spherical(p, q)
    cosine, sine = _relative_position(p, q)
    like = to_double(p.concentration)
    low, high = mass_interval(p._log_kernel, like.detach(), p.dimension)
    special = torch.atanh(cosine.detach().clamp(-1 + 1e-16, 1 - 1e-16))
    s, log_weights = panel_nodes(low, high, special)
    log_weights = log_weights.log() - (p.dimension - 1) * log_cosh(s)
    own = p._log_kernel(torch.tanh(s))
    weights = torch.softmax(own + log_weights, 0)
    z, tangent_weights = _tangent_nodes(p.dimension, s.device)

    needs_grad = any(getattr(q, name).requires_grad for name in q.arg_constraints)
    log_kernel = q._log_kernel if needs_grad else _fast_kernel(q)

    def other(rows: Tensor) -> Tensor:
        along, across = torch.tanh(rows) * cosine, torch.exp(-log_cosh(rows)) * sine
        cosines = (along + across * z[:, None, None]).clamp(-1, 1)
        return (log_kernel(cosines) * tangent_weights[:, None, None]).sum(0)

    return (weights * (own - evaluate_in_chunks(other, s, len(z)))).sum(0)


def _ratio_to_power_spherical(p: RotationalLaw, q: PowerSpherical) -> Tensor:
    """Return the same on the circle.

    There 1e-8 of the points are so close to the antipode of q that 1 + t is lost to rounding, and
    log(1 + t) is large. In s about the axis of q, log((1 + t)/2) is the log-sigmoid of 2s.
    """
    cosine, sine = _relative_position(p, q)
    reach = torch.full_like(cosine.detach(), CIRCLE_REACH)
    special = torch.atanh(cosine.detach().clamp(-1 + 1e-16, 1 - 1e-16))
    s, gaps = panel_nodes(-reach, reach, special)
    along, across = torch.tanh(s) * cosine, torch.exp(-log_cosh(s)) * sine
    own = p._log_kernel(torch.cat([along + across, along - across]).clamp(-1, 1))
    weights = torch.softmax(own + (gaps.log() - log_cosh(s)).repeat(2, 1), 0)
    mean_log = (weights * torch.nn.functional.logsigmoid(2 * s).repeat(2, 1)).sum(0)
    at_mode = q._log_kernel(torch.ones_like(cosine))
    kappa = to_double(p.concentration)
    own_mean = expectation(p._log_kernel, p._log_kernel, kappa, p.dimension)
    return own_mean - at_mode - to_double(q.concentration) * mean_log


def _fast_kernel(law: RotationalLaw) -> Callable[[Tensor], Tensor]:
    """Return the log kernel of a law without gradients, interpolated where that is exact."""
    with torch.no_grad():
        table = KernelTable(law._log_kernel, to_double(law.concentration))
    return table if table.is_resolved else law._log_kernel


def evaluate_in_chunks(function: Callable[[Tensor], Tensor], rows: Tensor, factor: int) -> Tensor:
    """Evaluate a function of the rows in parts; with gradients, parts are evaluated again."""
    size = max(1, CHUNK_COSINES // max(1, rows.shape[1] * factor))
    parts = rows.split(size)
    if torch.is_grad_enabled():
        return torch.cat([checkpoint(function, part, use_reentrant=False) for part in parts])
    return torch.cat([function(part) for part in parts])


@register_kl(RotationalLaw, RotationalLaw)  # type: ignore[untyped-decorator]
def _kl(p: RotationalLaw, q: RotationalLaw) -> Tensor:
    require_one_sphere(p, q)
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    value = mean_log_ratio(*_broadcast(p, q)).clamp_min(0)
    return value.reshape(shape).to(p.concentration)


@register_kl(RotationalLaw, VonMisesFisher)  # type: ignore[untyped-decorator]
def _kl_to_von_mises_fisher(p: RotationalLaw, q: VonMisesFisher) -> Tensor:
    """Return -entropy - E_p[log q], in which only the mean of p occurs."""
    require_one_sphere(p, q)
    kappa = to_double(q.concentration)
    mean = (to_double(p.mean) * to_double(q.mean_direction)).sum(-1)
    log_density = kappa * mean - log_cosine_mgf(kappa, q.dimension) - log_area(q.dimension)
    return (-to_double(p.entropy()) - log_density).to(p.concentration)


@register_kl(VonMisesFisher, VonMisesFisher)  # type: ignore[untyped-decorator]
def _kl_of_von_mises_fisher(p: VonMisesFisher, q: VonMisesFisher) -> Tensor:
    require_one_sphere(p, q)
    kappa_p, kappa_q = to_double(p.concentration), to_double(q.concentration)
    cosine = (to_double(p.mean_direction) * to_double(q.mean_direction)).sum(-1)
    difference = log_cosine_mgf(kappa_q, q.dimension) - log_cosine_mgf(kappa_p, p.dimension)
    value = (kappa_p - kappa_q * cosine) * to_double(p.mean_resultant_length) + difference
    return value.to(p.concentration)


@register_kl(Uniform, RotationalLaw)  # type: ignore[untyped-decorator]
def _kl_from_uniform(p: Uniform, q: RotationalLaw) -> Tensor:
    require_one_sphere(p, q)
    like = to_double(q.concentration)
    value = -expectation(lambda t: torch.zeros_like(t + like), q._log_kernel, like, q.dimension)
    return value.expand(broadcast_shapes(p.batch_shape, q.batch_shape)).to(q.concentration)


@register_kl(RotationalLaw, Uniform)  # type: ignore[untyped-decorator]
def kl_to_uniform(p: SphereDistribution, q: Uniform) -> Tensor:
    """Return the log area minus the entropy of p."""
    require_one_sphere(p, q)
    value = log_area(p.dimension) - p.entropy()
    return value.expand(broadcast_shapes(p.batch_shape, q.batch_shape))


@register_kl(Uniform, Uniform)  # type: ignore[untyped-decorator]
def _kl_of_uniforms(p: Uniform, q: Uniform) -> Tensor:
    require_one_sphere(p, q)
    return p.entropy().new_zeros(broadcast_shapes(p.batch_shape, q.batch_shape))
