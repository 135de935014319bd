"""The uniform law on the sphere, the limit of the other laws at concentration zero."""

from typing import Any, Self, cast

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl

from sterad.sphere.constraints import (
    broadcast_shapes,
    require_dimension,
    require_points,
    unit_sphere,
)
from sterad.sphere.law import Shape, SphericalLaw, log_area


class Uniform(Distribution):
    """The law with the same density in every direction.

    >>> law = Uniform(3)
    >>> round(law.entropy().exp().item() / torch.pi, 5)
    4.0
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012
    support: constraints.Constraint = unit_sphere
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

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point."""
        return self.event_shape[0]

    def log_prob(self, value: Tensor) -> Tensor:
        """Return minus the log area, at `value`: (..., *batch, d) unit rows."""
        require_points(self, value)
        shape = broadcast_shapes(value.shape[:-1], self.batch_shape)
        return value.new_full(shape, -log_area(self.dimension))

    def rsample(self, sample_shape: Shape = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points: (*sample_shape, *batch, d)."""
        shape = self._extended_shape(torch.Size(sample_shape))
        noise = torch.randn(
            shape, generator=generator, dtype=self._like.dtype, device=self._like.device
        )
        return torch.nn.functional.normalize(noise, dim=-1)

    def sample(self, sample_shape: Shape = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points: (*sample_shape, *batch, d)."""
        return self.rsample(sample_shape, generator)

    @property
    def mean_resultant_length(self) -> Tensor:
        """Zero; there is neither a mean direction nor a mode."""
        return self._like.expand(self.batch_shape)

    @property
    def mean(self) -> Tensor:
        """Zeros: (*batch, d)."""
        return self._like.expand(self.batch_shape + self.event_shape)

    def entropy(self) -> Tensor:
        """Return the log area, the largest entropy that a law on the sphere can have."""
        return (self._like + log_area(self.dimension)).expand(self.batch_shape)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        """Return the same law over `batch_shape`."""
        new: Self = self.__new__(type(self)) if _instance is None else _instance
        new._like = self._like
        super(Uniform, new).__init__(torch.Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new


def _kl_to_uniform(p: SphericalLaw, q: Uniform) -> Tensor:
    return log_area(p.dimension) - p.entropy()


cast(Any, register_kl)(SphericalLaw, Uniform)(_kl_to_uniform)
