"""Divergences between any two laws on the circle and on the sphere in three dimensions.

The integral over the sphere has an axis: that of p or, where p is the direction of a Gaussian
vector with a covariance, of the vector made isotropic, whose direction is mapped back. About this
axis s = artanh(cosine) has panels of Gauss-Legendre nodes, and the angle across has nodes that are
dense in the plane of a direction at which log q may be singular (PowerSpherical). Both are refined
until the value no longer changes.
"""

from typing import Any

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.angular_central_gaussian import AngularCentralGaussian
from sterad.sphere.angular_gaussian import AngularGaussian
from sterad.sphere.constraints import broadcast_shapes
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.divergence import evaluate_in_chunks, panel_nodes, require_one_sphere
from sterad.sphere.gaussian_moments import whiten
from sterad.sphere.general_angular_gaussian import GeneralAngularGaussian
from sterad.sphere.power_spherical import PowerSpherical
from sterad.sphere.quadrature import log_cosh, mass_interval, peak_nodes
from sterad.sphere.rotational_law import RotationalLaw

MAX_DIMENSION = 3
FIRST_PANELS = 16
FIRST_STEP = 0.4
"""Panels of the cosine and step of the angle across, in the first of the refinements."""
MAX_REFINEMENTS = 5
TOLERANCE = 1e-9
"""Relative change of the value, or absolute change below 1, that ends the refinement."""


def surface_divergence(p: SphereDistribution, q: SphereDistribution) -> Tensor:
    """Return KL(p || q) by quadrature over the sphere, in two and three dimensions: (*batch)."""
    require_one_sphere(p, q)
    if p.dimension > MAX_DIMENSION:
        raise NotImplementedError(
            f"the divergence between {type(p).__name__} and {type(q).__name__} is an integral over "
            f"the whole sphere, which is computed in 2 and 3 dimensions, but not in {p.dimension}: "
            "estimate it as the mean of p.log_prob(x) - q.log_prob(x) over samples x of p"
        )
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    first, second = p.expand(shape).flatten(), q.expand(shape).flatten()
    count = first.batch_shape.numel()
    parts = [slice(place, place + 1) for place in range(count)]
    values = [_refined(first.flatten(part), second.flatten(part)) for part in parts]
    return torch.stack(values).clamp_min(0).reshape(shape).to(_parameter(p, q))


def _parameter(*laws: SphereDistribution) -> Tensor:
    """Return a parameter of one of the laws; Uniform has none."""
    values: list[Tensor] = [getattr(law, name) for law in laws for name in law.arg_constraints]
    return values[0]


def _refined(p: SphereDistribution, q: SphereDistribution) -> Tensor:
    """Return the divergence of two laws with batch shape (1,)."""
    before = torch.tensor(torch.inf, dtype=torch.float64)
    for level in range(MAX_REFINEMENTS):
        points, weights = surface_nodes(p, q, 2**level)
        with torch.no_grad():
            value = _mean_log_ratio(p, q, points, weights)
        if float((value - before).abs()) <= TOLERANCE * max(1.0, float(value)):
            return _mean_log_ratio(p, q, points, weights) if torch.is_grad_enabled() else value
        before = value
    raise SteradError(
        f"the quadrature of the divergence between {type(p).__name__} and {type(q).__name__} has "
        f"not converged (last value {float(before):.6g}): one law is too narrow relative to the "
        "other; estimate it as the mean of p.log_prob(x) - q.log_prob(x) over samples x of p"
    )


def _mean_log_ratio(
    p: SphereDistribution, q: SphereDistribution, points: Tensor, weights: Tensor
) -> Tensor:
    """Return the sum of weights (log p - log q); differentiable in the parameters of both.

    The weights are the probabilities of the points under p. A factor p/p, whose value is 1, adds
    their derivatives.
    """

    def term(rows: Tensor) -> Tensor:
        log_p = _log_prob(p, rows[:, :-1])
        ratio = (log_p - log_p.detach()).exp() * (log_p - _log_prob(q, rows[:, :-1]))
        return ratio * rows[:, -1]

    rows = torch.cat([points, weights.unsqueeze(-1)], -1)
    return evaluate_in_chunks(term, rows, 1).sum()


def _log_prob(law: SphereDistribution, points: Tensor) -> Tensor:
    """Return the log-density of a law with batch shape (1,) at points (n, d): (n,)."""
    value: Tensor = law.log_prob(points.unsqueeze(1)).squeeze(1)
    return value


@torch.no_grad()
def surface_nodes(
    p: SphereDistribution, q: SphereDistribution, refinement: int
) -> tuple[Tensor, Tensor]:
    """Return points, (n, d), and their probabilities under p, (n,)."""
    base = _axial_base(p)
    factor = getattr(p, "scale_tril", None)
    special = -to_double(getattr(q, "mean_direction", base.mean_direction))[0]
    if factor is not None:
        factor = to_double(factor)[0]
        special = torch.linalg.solve_triangular(factor, special.unsqueeze(-1), upper=False)[:, 0]
        special = torch.nn.functional.normalize(special, dim=0)
    points, weights = _nodes_about(base, special, isinstance(q, PowerSpherical), refinement)
    if factor is not None:
        points = points @ factor.mT
    return torch.nn.functional.normalize(points, dim=-1), weights


def _axial_base(p: Any) -> RotationalLaw:
    """Return the law, with an axis, of whose points those of p are a function."""
    if isinstance(p, RotationalLaw):
        return p
    if isinstance(p, GeneralAngularGaussian):
        return whiten(p.loc, p.scale_tril)
    if isinstance(p, AngularCentralGaussian):
        return whiten(p.mean, p.scale_tril)
    axis = torch.eye(p.dimension, dtype=torch.float64)[:1]
    return AngularGaussian(axis, torch.zeros(1, dtype=torch.float64))


def _nodes_about(
    base: RotationalLaw, special: Tensor, is_singular: bool, refinement: int
) -> tuple[Tensor, Tensor]:
    """Return points about the pole of the base and their probabilities.

    They are dense in the plane of the special direction, and at it if log q is singular there.
    """
    pole = to_double(base.mean_direction)[0]
    like = to_double(base.concentration)
    cosine = (pole * special).sum()
    low, high = mass_interval(base._log_kernel, like, base.dimension)
    place = torch.atanh(cosine.clamp(-1 + 1e-16, 1 - 1e-16)).reshape(1)
    s, gaps = panel_nodes(low, high, place if is_singular else None, FIRST_PANELS * refinement)
    height = base._log_kernel(torch.tanh(s)) - (base.dimension - 1) * log_cosh(s) + gaps.log()
    outer = torch.softmax(height, 0)[:, 0]
    across = torch.nn.functional.normalize(special - cosine * pole, dim=0)
    if float(torch.linalg.vector_norm(across)) < 0.5:  # the special direction is the pole
        axis = torch.nn.functional.one_hot(pole.abs().argmin(), len(pole)).to(pole)
        across = torch.nn.functional.normalize(axis - pole * (axis * pole).sum(), dim=0)
    circle, inner = _circle(pole, across, FIRST_STEP / refinement)
    along, sine = torch.tanh(s[:, 0]), torch.exp(-log_cosh(s[:, 0]))
    points = along[:, None, None] * pole + sine[:, None, None] * circle
    return points.flatten(0, 1), (outer.unsqueeze(1) * inner).flatten()


def _circle(pole: Tensor, across: Tensor, step: float) -> tuple[Tensor, Tensor]:
    """Return the tangent directions, (m, d), and their weights."""
    if len(pole) == 2:
        return torch.stack([across, -across]), torch.full((2,), 0.5, dtype=torch.float64)
    nodes, log_weights = peak_nodes(-13.0, 13.0, step, pole.device)
    cosine, sine = torch.tanh(nodes), torch.exp(-log_cosh(nodes))
    weights = torch.softmax(log_weights - log_cosh(nodes), 0) / 2
    side = torch.linalg.cross(pole, across)
    directions = cosine[:, None] * across + torch.stack([sine, -sine])[..., None] * side
    return directions.flatten(0, 1), weights.repeat(2)
