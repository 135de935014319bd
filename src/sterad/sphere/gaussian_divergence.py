"""Divergences of directions of Gaussian vectors with a covariance, by integrals in one variable.

Let X ~ N(m, Σ) and u = X/|X|. E[log uᵀAu] = E[log XᵀAX] - E[log |X|²] gives the divergence to an
angular central Gaussian, and the first and second moments of u those to von Mises-Fisher and
Watson, in any dimension. log q(u) of every other law is a function of the cosine of u, or of u
mapped by a matrix, with an axis: its mean is an integral over the distribution of that cosine
(`gaussian_cosine`), where p is a law with an axis over those of a mixture (`gaussian_mixture`).
In two and three dimensions the integral is over the sphere (`surface_divergence`).
"""

from typing import Any

import torch
from torch import Tensor
from torch.distributions import register_kl

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.angular_central_gaussian import AngularCentralGaussian
from sterad.sphere.angular_gaussian import AngularGaussian
from sterad.sphere.constraints import broadcast_shapes
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.divergence import kl_to_uniform, require_one_sphere
from sterad.sphere.gaussian_cosine import cosine_mean
from sterad.sphere.gaussian_mixture import as_gaussian_mixture, gaussian_part
from sterad.sphere.gaussian_moments import direction_moments, mean_log_square, whiten
from sterad.sphere.general_angular_gaussian import GeneralAngularGaussian
from sterad.sphere.quadrature import Function, log_area
from sterad.sphere.rotational_law import RotationalLaw
from sterad.sphere.surface_divergence import MAX_DIMENSION as MAX_SURFACE_DIMENSION
from sterad.sphere.surface_divergence import surface_divergence
from sterad.sphere.uniform import Uniform
from sterad.sphere.von_mises_fisher import VonMisesFisher, log_cosine_mgf
from sterad.sphere.watson import Watson, log_kummer

KNOWN = (RotationalLaw, GeneralAngularGaussian, AngularCentralGaussian, Uniform)
"""Laws whose log-density is a function of a cosine and, with a covariance, of uᵀΣ⁻¹u."""


def gaussian_parameters(law: SphereDistribution) -> tuple[Tensor, Tensor]:
    """Return mean, (*batch, d), and factor, (*batch, d, d), of a Gaussian vector in float64."""
    if isinstance(law, GeneralAngularGaussian):
        return to_double(law.loc), to_double(law.scale_tril)
    if isinstance(law, AngularCentralGaussian):
        return to_double(law.mean), to_double(law.scale_tril)
    mean = torch.zeros(law.batch_shape + law.event_shape, dtype=torch.float64)
    if isinstance(law, AngularGaussian):
        length = to_double(law.concentration).unsqueeze(-1)
        mean = length * to_double(law.mean_direction)
    eye = torch.eye(law.dimension, dtype=mean.dtype, device=mean.device)
    return mean, eye.expand(*law.batch_shape, law.dimension, law.dimension)


def _kl_to_central(p: SphereDistribution, q: AngularCentralGaussian) -> Tensor:
    """Return -entropy - E_p[log q] by one-dimensional integrals."""
    require_one_sphere(p, q)
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    mean, factor = gaussian_parameters(p)
    other = to_double(q.scale_tril).expand(*shape, p.dimension, p.dimension)
    mean, factor = mean.expand(*shape, p.dimension), factor.expand_as(other)
    white_mean = torch.linalg.solve_triangular(other, mean.unsqueeze(-1), upper=False).squeeze(-1)
    white_factor = torch.linalg.solve_triangular(other, factor, upper=False)
    stretch = mean_log_square(white_mean, white_factor) - mean_log_square(mean, factor)
    log_volume = other.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_q = -log_area(p.dimension) - log_volume - p.dimension / 2 * stretch
    return (-to_double(p.entropy()) - log_q).clamp_min(0).to(q.scale_tril)


for _law in (GeneralAngularGaussian, AngularCentralGaussian, AngularGaussian, Uniform):
    register_kl(_law, AngularCentralGaussian)(_kl_to_central)


def _kl_to_exponential_family(p: Any, q: VonMisesFisher | Watson) -> Tensor:
    """Return -entropy - E_p[log q], in which only the moments of p occur.

    The moments have no gradients: where p needs them, the integral is over the sphere, in two and
    three dimensions.
    """
    require_one_sphere(p, q)
    mean, factor = gaussian_parameters(p)
    if torch.is_grad_enabled() and (mean.requires_grad or factor.requires_grad):
        return _kl(p, q)
    first, second = direction_moments(mean, factor)
    kappa, axis = to_double(q.concentration), to_double(q.mean_direction)
    if isinstance(q, Watson):
        square = (axis.unsqueeze(-2) @ second @ axis.unsqueeze(-1)).squeeze((-2, -1))
        log_q = kappa * square - log_kummer(kappa, q.dimension)
    else:
        log_q = kappa * (axis * first).sum(-1) - log_cosine_mgf(kappa, q.dimension)
    value = log_area(p.dimension) - log_q - to_double(p.entropy())
    return value.clamp_min(0).to(q.concentration)


for _law in (GeneralAngularGaussian, AngularCentralGaussian):
    register_kl(_law, Uniform)(kl_to_uniform)
    for _family in (VonMisesFisher, Watson):
        register_kl(_law, _family)(_kl_to_exponential_family)


def _kl(p: Any, q: Any) -> Tensor:
    """Return -entropy - E_p[log q], one pair of the batch after the other."""
    require_one_sphere(p, q)
    if p.dimension <= MAX_SURFACE_DIMENSION or not all(isinstance(x, KNOWN) for x in (p, q)):
        return surface_divergence(p, q)
    parameters = [getattr(law, name) for law in (p, q) for name in law.arg_constraints]
    if torch.is_grad_enabled() and any(x.requires_grad for x in parameters):
        raise SteradError(
            f"the divergence between {type(p).__name__} and {type(q).__name__} has no gradients in "
            f"{p.dimension} dimensions: compute it within torch.no_grad(), or differentiate the "
            "mean of p.log_prob(x) - q.log_prob(x) over samples x = p.rsample()"
        )
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    first, second = p.expand(shape).flatten(), q.expand(shape).flatten()
    parts = [slice(place, place + 1) for place in range(first.batch_shape.numel())]
    mean_log = [_mean_log_density(first.flatten(part), second.flatten(part)) for part in parts]
    value: Tensor = -to_double(p.entropy()) - torch.stack(mean_log).reshape(shape)
    return value.clamp_min(0).to(parameters[0])


def _mean_log_density(p: Any, q: Any) -> Tensor:
    """Return E_p[log q] for laws with batch shape (1,)."""
    weights = torch.ones(1, dtype=torch.float64)
    parts = p
    if isinstance(p, RotationalLaw) and not isinstance(p, AngularGaussian):
        k, weights, variance = as_gaussian_mixture(p)
        parts = gaussian_part(to_double(p.mean_direction)[0], k, variance)
    mean, factor = gaussian_parameters(parts)
    weights = weights.to(mean)
    stretch = torch.zeros((), dtype=torch.float64)
    axis, log_q, log_volume = _axis_of(q)
    if isinstance(q, GeneralAngularGaussian | AngularCentralGaussian):
        other = to_double(q.scale_tril)
        length = mean_log_square(mean, factor)
        mean = torch.linalg.solve_triangular(other, mean.unsqueeze(-1), upper=False).squeeze(-1)
        factor = torch.linalg.solve_triangular(other, factor, upper=False)
        stretch = (weights * (mean_log_square(mean, factor) - length)).sum()
    value: Tensor = -log_area(p.dimension) - log_volume - p.dimension / 2 * stretch
    if isinstance(q, AngularCentralGaussian):
        return value
    covariance = (factor @ factor.mT)[0]
    for weight, center in zip(weights, mean, strict=True):
        mean_log = cosine_mean(center, covariance, axis, log_q, float(weight))
        value = value + weight * mean_log
    return value


def _axis_of(q: Any) -> tuple[Tensor, Function, Tensor]:
    """Return the axis, the log kernel of the cosine with it, and log |L| of a law."""
    white = q
    log_volume = torch.zeros((), dtype=torch.float64)
    if isinstance(q, GeneralAngularGaussian | AngularCentralGaussian):
        white = whiten(*gaussian_parameters(q))
        log_volume = to_double(q.scale_tril).diagonal(dim1=-2, dim2=-1).log().sum()
    return to_double(white.mean_direction)[0], white._log_kernel, log_volume


register_kl(SphereDistribution, SphereDistribution)(_kl)
