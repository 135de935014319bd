"""The result of fitting a law to points by maximum likelihood."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch import Tensor

from sterad.errors import SteradError

if TYPE_CHECKING:
    from sterad.sphere.distribution import SphereDistribution

Law = TypeVar("Law", bound="SphereDistribution", covariant=True)


@dataclass(frozen=True)
class Fit(Generic[Law]):
    """A fitted law, or a batch of them, with its uncertainty.

    Weights count as repetitions of a point: a weight of 2 is the point given twice.
    """

    law: Law
    """The law that maximizes the likelihood, in the dtype of the points."""
    log_likelihood: Tensor
    """The weighted sum of log-densities with respect to area: (*batch)."""
    standard_errors: Mapping[str, Tensor]
    """Standard errors from the observed information, by the name of the parameter.

    (*batch) for a concentration, (*batch, d) for `loc`, (*batch, d, d) for a covariance. For the
    mean direction it is the standard deviation, in radians, of the angle in one tangent direction:
    (*batch). It is infinite where the data do not determine the parameter, and for laws with a mean
    and a covariance of more than 2,000 parameters (from 62 dimensions on), except for the
    concentration; `standard_error_of` has no such limit. For a law with a covariance they are
    computed when they are first read."""
    count: Tensor
    """The sum of the weights: (*batch)."""
    n_parameters: int
    """The number of free parameters of one law."""
    at_limit: Tensor
    """Whether the concentration is at a limit of its range rather than at a maximum: (*batch).

    The limits are 0 (the resultant is zero) and the concentration of a variance of 1e-8 (all
    points are equal, or there is only one)."""
    converged: Tensor
    """Whether the optimizer reached its tolerance: (*batch)."""
    error_of: Callable[[Callable[[Law], Tensor]], Tensor] | None = field(default=None, repr=False)
    """What `standard_error_of` calls, for laws with a mean and a covariance."""

    def standard_error_of(self, function: Callable[[Law], Tensor]) -> Tensor:
        """Return the standard error of a number that depends on the fitted law: (*batch).

        For laws with a mean and a covariance, of any number of parameters: by the delta method
        from the observed information, with conjugate gradients in place of its inverse.

        function: from a law to one number for each law, by differentiable operations.

        >>> from sterad.sphere import GeneralAngularGaussian
        >>> law = GeneralAngularGaussian([2.0, 0.0, 0.0], covariance_matrix=torch.eye(3))
        >>> points = law.sample(torch.Size([500]), generator=torch.Generator().manual_seed(0))
        >>> fit = GeneralAngularGaussian.fit(points)
        >>> error = fit.standard_error_of(lambda law: law.loc[0])
        >>> torch.testing.assert_close(error, fit.standard_errors["loc"][0], rtol=1e-4, atol=0)
        """
        if self.error_of is None:
            raise SteradError(
                f"{type(self.law).__name__} has no standard errors of functions: its parameters "
                f"have theirs in standard_errors ({', '.join(self.standard_errors) or 'none'})"
            )
        return self.error_of(function)

    @property
    def aic(self) -> Tensor:
        """Akaike's information criterion, 2k - 2 log L; smaller is better: (*batch)."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> Tensor:
        """The Bayesian information criterion, k log n - 2 log L; smaller is better: (*batch)."""
        return self.n_parameters * self.count.log() - 2 * self.log_likelihood

    def confidence_interval(
        self, level: float = 0.95, parameter: str = "concentration"
    ) -> tuple[Tensor, Tensor]:
        """Return the ends of the interval estimate ± z · standard error, shaped as the parameter.

        The lower end of a concentration that cannot be negative is at least 0.

        >>> from sterad.sphere import VonMisesFisher
        >>> law = VonMisesFisher(torch.eye(3)[0], 10.0)
        >>> points = law.sample(torch.Size([500]), generator=torch.Generator().manual_seed(0))
        >>> low, high = VonMisesFisher.fit(points).confidence_interval(0.95)
        >>> bool(low < 10 < high)
        True
        """
        if not 0 < level < 1:
            raise SteradError(f"level is {level}, but must be between 0 and 1: give 0.95 for 95 %")
        value = getattr(self.law, parameter, None)
        if parameter not in self.standard_errors or value is None or parameter == "mean_direction":
            known = [name for name in self.standard_errors if name != "mean_direction"]
            raise SteradError(
                f"{type(self.law).__name__} has no interval for {parameter!r}: "
                + (f"give one of {', '.join(known)}" if known else "it has no concentration")
            )
        z = math.sqrt(2) * float(torch.erfinv(torch.tensor(level, dtype=torch.float64)))
        reach = z * self.standard_errors[parameter]
        low = value - reach
        is_signed = bool(getattr(self.law, "has_signed_concentration", False))
        is_positive = parameter == "concentration" and not is_signed
        return low.clamp_min(0) if is_positive else low, value + reach


def check_number(value: object, batch: torch.Size) -> Tensor:
    """Return the value of a function of laws; refuse all but one number for each law.

    >>> check_number(torch.zeros(2, requires_grad=True), torch.Size([2])).shape
    torch.Size([2])
    """
    found = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
    if not isinstance(value, Tensor) or value.shape != batch:
        raise SteradError(
            f"the function returned {found}, and one number for each law is needed, a tensor of "
            f"shape {tuple(batch)}: select an entry, such as law.loc[..., 0]"
        )
    if not value.requires_grad:
        raise SteradError(
            "the function does not depend on the law by operations that torch can differentiate: "
            "compute it from law.loc and law.covariance_matrix, without item() or detach()"
        )
    return value
