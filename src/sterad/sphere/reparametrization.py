"""Samples that are differentiable with respect to mean direction and concentration.

The cosine is reparametrized implicitly: a draw w keeps its probability F(w; κ) when κ changes, so
dw/dκ = -(∂F/∂κ) / f. M. Figurnov, S. Mohamed and A. Mnih, "Implicit Reparameterization Gradients",
2018, https://arxiv.org/abs/1805.08498. Differentiating through a rejection sampler instead ignores
how acceptance depends on κ and gives a biased gradient.
"""

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.sphere.cumulative import CosineIntegral

if TYPE_CHECKING:
    from sterad.sphere.rotational_law import RotationalLaw

CHUNK_LAWS = 256
"""Laws of a batch whose distribution functions are tabulated at once: 6,144 numbers each."""


class _ImplicitCosine(torch.autograd.Function):
    """The identity of drawn cosines, with a given derivative in κ; differentiable once."""

    @staticmethod
    def forward(ctx: Any, kappa: Tensor, cosine: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return cosine.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return gradient * slope, None, None


def reparametrize(law: "RotationalLaw", cosine: Tensor) -> Tensor:
    """Return drawn cosines, (*sample, *batch), with their derivatives in the concentration."""
    if not law.concentration.requires_grad:
        return cosine
    count = max(1, law.batch_shape.numel())
    rows = cosine.reshape(-1, count)
    parts = [slice(first, first + CHUNK_LAWS) for first in range(0, count, CHUNK_LAWS)]
    slopes = [_slope(law.flatten(part), rows[:, part]) for part in parts]
    kappa = to_double(law.concentration).expand(cosine.shape)
    slope = torch.cat(slopes, 1).reshape(cosine.shape)
    return cast(Tensor, cast(Any, _ImplicitCosine).apply(kappa, cosine, slope))


def _slope(law: "RotationalLaw", cosine: Tensor) -> Tensor:
    """Return dw/dκ of cosines (n, k) of a law with batch shape (k,)."""
    fixed = law.flatten()
    fixed.concentration = law.concentration.detach()
    kappa = to_double(fixed.concentration)
    with torch.no_grad():
        integral = CosineIntegral(fixed._log_kernel, kappa, law.dimension)
        log_kernel = fixed._log_kernel(cosine)
    return integral.slope(cosine, log_kernel, _score(fixed, integral.cosine))


def _score(law: "RotationalLaw", cosine: Tensor) -> Tensor:
    """Return ∂ log g/∂κ at each cosine: (n, k).

    Each column depends on its own κ alone. The derivative of a sum weighted by v is linear in v, so
    that a second derivative, in v, gives all entries without a copy of κ for each.
    """
    with torch.enable_grad():
        law.concentration = law.concentration.detach().requires_grad_()
        weights = torch.ones_like(cosine, requires_grad=True)
        total = (weights * law._log_kernel(cosine)).sum()
        (slope,) = torch.autograd.grad(total, law.concentration, create_graph=True)
        (score,) = torch.autograd.grad(slope.sum(), weights)
    return score.detach()


def turn_to_pole(cosine: Tensor, noise: Tensor, pole: Tensor) -> Tensor:
    """Return unit rows with given cosines with the pole and directions from the noise.

    cosine: (...); noise: (..., d) normal variables; pole: (..., d) unit rows. The points are made
    about an axis at least 90° away from the pole and reflected, axis to pole. The reflection is a
    smooth function of the pole, with bounded derivatives; the axis changes with the sign of the
    first coordinate only.
    """
    sign = torch.where(pole[..., :1] >= 0, 1.0, -1.0).to(pole.dtype)
    tangent = torch.nn.functional.normalize(noise[..., 1:], dim=-1)
    # The lower bound keeps the derivative of the square root finite at the poles.
    sine = ((1 - cosine) * (1 + cosine)).clamp_min(1e-30).sqrt().unsqueeze(-1)
    point = torch.cat([-sign * cosine.unsqueeze(-1), sine * tangent], -1)
    mirror = torch.cat([pole[..., :1] + sign, pole[..., 1:]], -1)
    scale = 2 * (mirror * point).sum(-1, keepdim=True) / mirror.square().sum(-1, keepdim=True)
    return point - scale * mirror
