"""The uniform law on the sphere, the limit of the other laws at concentration zero."""

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.distributions import constraints

from sterad.sphere.constraints import (
    ArrayLike,
    as_float_tensor,
    broadcast_shapes,
    require_dimension,
    require_points,
)
from sterad.sphere.distribution import Shape, SphereDistribution
from sterad.sphere.fit import Fit
from sterad.sphere.quadrature import log_area
from sterad.sphere.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from sterad.sphere.power_spherical import PowerSpherical


class Uniform(SphereDistribution):
    """The law with the same density in every direction.

    >>> law = Uniform(3)
    >>> round(law.entropy().exp().item() / torch.pi, 5)
    4.0
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012
    has_rsample = True

    def __init__(
        self,
        dimension: int,
        batch_shape: Shape = (),
        dtype: torch.dtype | None = None,
        device: torch.device | None = None,
        validate_args: bool | None = None,
    ) -> None:
        require_dimension(dimension)
        self._like = torch.zeros((), dtype=dtype, device=device)
        super().__init__(torch.Size(batch_shape), torch.Size([dimension]), validate_args)

    def log_prob(self, value: ArrayLike) -> Tensor:
        """Return minus the log area, at `value`: (..., *batch, d) unit rows."""
        value = as_float_tensor("value", value)
        require_points(self, value)
        shape = broadcast_shapes(value.shape[:-1], self.batch_shape)
        return value.new_full(shape, -log_area(self.dimension))

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        like = self._like
        noise = torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
        return torch.nn.functional.normalize(noise, dim=-1)

    @property
    def mean_resultant_length(self) -> Tensor:
        """Zero; there is neither a mean direction nor a mode."""
        return self._like.expand(self.batch_shape)

    @property
    def mean(self) -> Tensor:
        """Zeros: (*batch, d)."""
        return self._like.expand(self.batch_shape + self.event_shape)

    @property
    def variance(self) -> Tensor:
        """1/d for each coordinate: (*batch, d)."""
        return self.mean + 1 / self.dimension

    def entropy(self) -> Tensor:
        """Return the log area, the largest entropy that a law on the sphere can have."""
        return (self._like + log_area(self.dimension)).expand(self.batch_shape)

    @property
    def mode(self) -> Tensor:
        """Not defined."""
        raise NotImplementedError("every direction is a mode of the uniform law")

    def cdf(self, value: ArrayLike) -> Tensor:
        """Return the probability of a cosine with any fixed axis below `value`."""
        return self._cosine_law().cdf(value)

    def sf(self, value: ArrayLike) -> Tensor:
        """Return the probability of a cosine with any fixed axis above `value`."""
        return self._cosine_law().sf(value)

    def icdf(self, value: ArrayLike) -> Tensor:
        """Return the cosine with any fixed axis below which the probability is `value`."""
        return self._cosine_law().icdf(value)

    def _cosine_law(self) -> "PowerSpherical":
        from sterad.sphere.power_spherical import PowerSpherical  # which imports this module

        axis = torch.zeros(self.dimension, dtype=self._like.dtype, device=self._like.device)
        axis[0] = 1
        zero = self._like.expand(self.batch_shape)
        return PowerSpherical(axis.expand(*self.batch_shape, -1), zero, validate_args=False)

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        batch, like = data.batch_shape, data.points
        count = data.count.reshape(batch).to(like)
        return Fit(
            law=cls(data.dimension, batch, dtype=like.dtype, device=like.device),
            log_likelihood=-log_area(data.dimension) * count,
            standard_errors={},
            count=count,
            n_parameters=0,
            at_limit=torch.zeros_like(count, dtype=torch.bool),
            converged=torch.ones_like(count, dtype=torch.bool),
        )
