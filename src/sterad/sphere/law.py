"""A law on the unit sphere that is symmetric about its mean direction."""

import math
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.types import _size

from sterad.registry import Registry
from sterad.sphere.constraints import (
    ArrayLike,
    as_vectors,
    finite_nonnegative,
    require_concentration,
    require_dimension,
    require_points,
    require_unit,
    unit_sphere,
)
from sterad.sphere.expectation import expect
from sterad.sphere.shapes import broadcast


def log_area(dimension: int) -> float:
    """Return the logarithm of the area of the unit sphere of R^dimension.

    >>> round(log_area(3) - math.log(4 * math.pi), 12)
    0.0
    """
    return math.log(2) + dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2)


class SphericalLaw(Distribution):
    """A law whose density depends on the cosine with its mean direction alone.

    A law is `log_kernel_at`, `concentration_of` and `sample_cosine`; the rest follows.
    mean_direction: (*batch, d) unit rows; concentration: (*batch), zero for the uniform law.
    """

    arg_constraints: dict[str, constraints.Constraint] = {  # noqa: RUF012
        "mean_direction": unit_sphere,
        "concentration": finite_nonnegative,
    }
    support: constraints.Constraint = unit_sphere
    mean_direction: Tensor
    concentration: Tensor

    def __init__(
        self,
        mean_direction: ArrayLike,
        concentration: ArrayLike,
        validate_args: bool | None = None,
    ) -> None:
        mean_direction = as_vectors("mean_direction", mean_direction)
        require_dimension(mean_direction.shape[-1] if mean_direction.dim() else 1)
        concentration = as_vectors("concentration", concentration, mean_direction)
        shape = broadcast(mean_direction.shape[:-1], concentration.shape)
        self.mean_direction = mean_direction.expand(*shape, mean_direction.shape[-1])
        self.concentration = concentration.expand(shape)
        if self._validate_args if validate_args is None else validate_args:
            require_unit("mean_direction", mean_direction)
            require_concentration(concentration)
        super().__init__(shape, mean_direction.shape[-1:], validate_args=validate_args)

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return the log-density relative to the uniform law; float64 in, float64 out."""
        raise NotImplementedError

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return the concentration that the user's `variance` means."""
        raise NotImplementedError

    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Draw cosines with the mean direction, of `shape` and in float64."""
        raise NotImplementedError

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point."""
        return self.event_shape[0]

    def log_kernel(self, cosine: Tensor) -> Tensor:
        """Return the log-density relative to the uniform law at `cosine`: (..., *batch)."""
        value = self._log_kernel(cosine.double())
        return value.to(torch.promote_types(cosine.dtype, self.concentration.dtype))

    def log_prob(self, value: ArrayLike) -> Tensor:
        """Return the log-density with respect to area at `value`: (..., *batch, d) unit rows."""
        value = as_vectors("value", value)
        require_points(self, value)
        # In float64 throughout: the slope in the cosine is of the order of κ√d.
        cosine = (value.double() * self.mean_direction.double()).sum(-1)
        density = self._log_kernel(cosine) - log_area(self.dimension)
        return density.to(torch.promote_types(value.dtype, self.concentration.dtype))

    def _log_kernel(self, cosine: Tensor) -> Tensor:
        return self.log_kernel_at(cosine, self.concentration.double(), self.dimension)

    @property
    def mode(self) -> Tensor:
        """The mean direction, where every law here is densest."""
        return self.mean_direction

    @property
    def mean_resultant_length(self) -> Tensor:
        """The length of the mean vector, E[cosine]: (*batch)."""
        return self._expect(lambda cosine: cosine).clamp(0, 1)

    @property
    def mean(self) -> Tensor:
        """The mean vector, inside the ball: (*batch, d)."""
        return self.mean_direction * self.mean_resultant_length.unsqueeze(-1)

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area: (*batch)."""
        return log_area(self.dimension) - self._expect(self._log_kernel)

    def _expect(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        kappa = self.concentration.double()
        value = expect(self._log_kernel, function, kappa, self.dimension)
        return value.to(self.concentration.dtype)

    def sample(self, sample_shape: _size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points: (*sample_shape, *batch, d)."""
        with torch.no_grad():
            return self._draw(self._extended_shape(torch.Size(sample_shape)), generator)

    def rsample(self, sample_shape: _size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points through which gradients flow to the parameters."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__} has no reparametrized sampler")
        return self._draw(self._extended_shape(torch.Size(sample_shape)), generator)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        cosine = self.sample_cosine(shape[:-1], generator).unsqueeze(-1)
        pole = self.mean_direction.double()
        noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=pole.device)
        tangent = noise - (noise * pole).sum(-1, keepdim=True) * pole
        tangent = torch.nn.functional.normalize(tangent, dim=-1)
        # The floor keeps the slope of the root finite at the poles.
        sine = ((1 - cosine) * (1 + cosine)).clamp_min(1e-30).sqrt()
        return (cosine * pole + sine * tangent).to(self.mean_direction.dtype)

    def expand(self, batch_shape: _size, _instance: Self | None = None) -> Self:
        """Return the same law with its parameters expanded to `batch_shape`."""
        new: Self = self.__new__(type(self)) if _instance is None else _instance
        shape = torch.Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            value: Tensor = getattr(self, name)
            setattr(
                new, name, value.expand(shape + value.shape[value.dim() - constraint.event_dim :])
            )
        super(SphericalLaw, new).__init__(shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new


LAWS: Registry[type[SphericalLaw]] = Registry("law", "sterad.laws")
