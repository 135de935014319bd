"""The base class of distributions of points on the unit sphere."""

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from sterad.errors import SteradError
from sterad.sphere.constraints import ArrayLike, unit_sphere
from sterad.sphere.fit import Fit
from sterad.sphere.weighted_points import WeightedPoints

Shape = torch.Size | list[int] | tuple[int, ...]
"""What torch accepts as the shape of samples."""


class SphereDistribution(Distribution):
    """A distribution of points on the unit sphere; subclasses implement `log_prob` and `_draw`."""

    support: constraints.Constraint = unit_sphere
    fitted_parameters: ClassVar[frozenset[str]] = frozenset({"mean_direction", "concentration"})
    """Names of the parameters that `fit` estimates; others keep the value given to it."""

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point."""
        return self.event_shape[0]

    def sample(self, sample_shape: Shape = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points: (*sample_shape, *batch, d)."""
        with torch.no_grad():
            return self._draw(self._extended_shape(torch.Size(sample_shape)), generator)

    def rsample(self, sample_shape: Shape = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points that are differentiable with respect to the parameters."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__} has no reparametrized sampler")
        return self._draw(self._extended_shape(torch.Size(sample_shape)), generator)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area, where there is a formula: (*batch)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no formula for its entropy: estimate it as the mean of "
            "-log_prob over samples"
        )

    def cdf(self, value: ArrayLike) -> Tensor:
        """Return the probability of a cosine with the axis below `value`, for laws of a cosine."""
        raise NotImplementedError(self._no_axis("cdf"))

    def icdf(self, value: ArrayLike) -> Tensor:
        """Return the cosine below which the probability is `value`, for laws of a cosine."""
        raise NotImplementedError(self._no_axis("icdf"))

    def _no_axis(self, name: str) -> str:
        return (
            f"{type(self).__name__} has no {name}: its density is not a function of the cosine "
            "with an axis; estimate the distribution of a cosine from samples"
        )

    @classmethod
    def fit(cls, points: ArrayLike, weights: ArrayLike | None = None, **shape: float) -> Fit[Self]:
        """Return the law of maximum likelihood for points, with standard errors.

        points: (*batch, n, d) unit rows, one law for each batch; weights: (*batch, n), ones by
        default; shape: parameters that are not fitted (df). Computed in float64, returned in the
        dtype of the points.
        """
        cls._require_shape(shape)
        return cls._fit(WeightedPoints.batched(points, weights), **shape)

    @classmethod
    def fit_batch(cls, points: ArrayLike, weights: ArrayLike, **shape: float) -> Fit[Self]:
        """Return k laws for the same points, (n, d), under k weightings, (k, n).

        The points are not copied k times; the M step of a mixture is one call.
        """
        cls._require_shape(shape)
        return cls._fit(WeightedPoints.shared(points, weights), **shape)

    @classmethod
    def _require_shape(cls, given: Mapping[str, float]) -> None:
        """Raise if an argument of a fit is no parameter of the law, or one that is fitted."""
        fixed = sorted(set(cast(Any, cls.arg_constraints)) - cls.fitted_parameters)
        for name in given:
            if name not in fixed:
                allowed = f"give only {', '.join(fixed)}" if fixed else "leave it out"
                raise SteradError(f"{cls.__name__} cannot be fitted with a given {name}: {allowed}")

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        raise SteradError(f"{cls.__name__} cannot be fitted: define _fit")

    def flatten(self, part: slice = slice(None)) -> Self:
        """Return the law with one batch dimension, or a part of it."""
        new = copy(self)
        for name, constraint in self.arg_constraints.items():
            value: Tensor = getattr(self, name)
            event_shape = value.shape[value.dim() - constraint.event_dim :]
            setattr(new, name, value.reshape(-1, *event_shape)[part])
        new._batch_shape = torch.Size([len(range(self.batch_shape.numel())[part])])
        return new

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        """Return the same law with its parameters expanded to `batch_shape`."""
        new = copy(self)
        new._batch_shape = torch.Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            value: Tensor = getattr(self, name)
            event_shape = value.shape[value.dim() - constraint.event_dim :]
            setattr(new, name, value.expand(new._batch_shape + event_shape))
        return new
