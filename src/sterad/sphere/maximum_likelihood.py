"""Maximum likelihood for a mean direction and a concentration."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor

from sterad.sphere.fit import Fit
from sterad.sphere.quadrature import log_area

if TYPE_CHECKING:
    from sterad.sphere.rotational_law import RotationalLaw

MIN_VARIANCE = 1e-8
"""Variance at the mode below which points count as equal: the concentration stops there."""
MAX_KAPPA = 1 / MIN_VARIANCE
"""The same as a concentration of the von Mises-Fisher law."""
MIN_RESULTANT = 1e-12
"""Mean resultant length below which the resultant counts as zero: it is a rounding error."""

Law = TypeVar("Law", bound="RotationalLaw")


@dataclass(frozen=True)
class Maximum:
    """A maximum of the likelihood; all tensors are float64, (k,) unless stated."""

    direction: Tensor
    """The mean direction: (k, d) unit rows."""
    concentration: Tensor
    log_likelihood: Tensor
    """Relative to the uniform law."""
    information: Tensor
    """Observed information about the concentration, the direction being unknown."""
    curvature: Tensor
    """Mean of minus the second derivatives of the log-likelihood over the tangent directions."""
    at_limit: Tensor
    converged: Tensor

    def where(self, condition: Tensor, other: "Maximum") -> "Maximum":
        """Return this maximum where `condition`, (k,), holds and the other elsewhere."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        column = condition.unsqueeze(-1)
        return Maximum(*(torch.where(column if x.dim() > 1 else condition, x, y) for x, y in pairs))

    def as_fit(self, cls: type[Law], count: Tensor, like: Tensor, **shape: float) -> Fit[Law]:
        """Return the fit of a law of class `cls` in the dtype of `like`; count: (*batch)."""
        batch, dimension = count.shape, self.direction.shape[-1]
        direction = self.direction.reshape(*batch, dimension).to(like)
        is_capped = self.at_limit & (self.concentration != 0)
        errors = {
            "concentration": standard_error(self.information, is_capped),
            "mean_direction": standard_error(self.curvature),
        }
        log_likelihood = self.log_likelihood.reshape(batch) - count * log_area(dimension)
        return Fit(
            law=cast(Any, cls)(direction, self.concentration.reshape(batch).to(like), **shape),
            log_likelihood=log_likelihood.to(like),
            standard_errors={name: x.reshape(batch).to(like) for name, x in errors.items()},
            count=count.to(like),
            n_parameters=dimension,
            at_limit=self.at_limit.reshape(batch).to(like.device),
            converged=self.converged.reshape(batch).to(like.device),
        )


def standard_error(information: Tensor, is_unknown: Tensor | None = None) -> Tensor:
    """Return 1/√information, infinite where the information is not positive.

    >>> standard_error(torch.tensor([4.0, 0.0]))
    tensor([0.5000,    inf])
    """
    known = information > 0
    if is_unknown is not None:
        known = known & ~is_unknown
    error = torch.rsqrt(torch.where(known, information, torch.ones_like(information)))
    return torch.where(known, error, torch.inf)


def split_resultant(total: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return direction and mean length of a resultant; the first axis and 0 if it is zero.

    >>> split_resultant(torch.tensor([0.0, 1.0]), torch.tensor(2.0))
    (tensor([0., 1.]), tensor(0.5000))
    """
    norm = torch.linalg.vector_norm(total, dim=-1)
    length = (norm / count).clamp_max(1)
    length = torch.where(length > MIN_RESULTANT, length, torch.zeros_like(length))
    axis = torch.zeros_like(total)
    axis[..., 0] = 1
    is_zero = (length == 0).unsqueeze(-1)
    safe = torch.where(is_zero, torch.ones_like(norm).unsqueeze(-1), norm.unsqueeze(-1))
    return torch.where(is_zero, axis, total / safe), length


def approximate_kappa(length: Tensor, dimension: int) -> Tensor:
    """Return a von Mises-Fisher concentration close to that with mean resultant `length`.

    A. Banerjee et al., "Clustering on the Unit Hypersphere using von Mises-Fisher Distributions",
    JMLR 6, 2005.

    >>> approximate_kappa(torch.tensor(0.5), 3)
    tensor(1.8333)
    """
    gap = ((1 - length) * (1 + length)).clamp_min(1e-300)
    return (length * (dimension - length.square()) / gap).clamp_max(MAX_KAPPA)
