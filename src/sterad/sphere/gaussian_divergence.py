"""Divergences of directions of Gaussian vectors with a covariance, by integrals in one variable.

Let X ~ N(m, Σ) and u = X/|X|. E[log uᵀAu] = E[log XᵀAX] - E[log |X|²] gives the divergence to an
angular central Gaussian, and the first and second moments of u those to von Mises-Fisher and
Watson, in any dimension. Other pairs without a common axis need an integral over the whole sphere,
which `surface_divergence` does in two and three dimensions.
"""

from typing import Any

import torch
from torch import Tensor
from torch.distributions import register_kl

from sterad.devices import to_double
from sterad.sphere.angular_central_gaussian import AngularCentralGaussian
from sterad.sphere.angular_gaussian import AngularGaussian
from sterad.sphere.constraints import broadcast_shapes
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.divergence import kl_to_uniform, require_one_sphere
from sterad.sphere.gaussian_moments import direction_moments, mean_log_square
from sterad.sphere.general_angular_gaussian import GeneralAngularGaussian
from sterad.sphere.quadrature import log_area
from sterad.sphere.surface_divergence import surface_divergence
from sterad.sphere.uniform import Uniform
from sterad.sphere.von_mises_fisher import VonMisesFisher, log_cosine_mgf
from sterad.sphere.watson import Watson, log_kummer


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

    The moments have no gradients: where p needs them, the integral is over the sphere.
    """
    require_one_sphere(p, q)
    mean, factor = gaussian_parameters(p)
    if torch.is_grad_enabled() and (mean.requires_grad or factor.requires_grad):
        return surface_divergence(p, q)
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

register_kl(SphereDistribution, SphereDistribution)(surface_divergence)
