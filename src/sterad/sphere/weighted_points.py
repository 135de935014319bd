"""Weighted points that laws are fitted to: checks, and products with directions in float64."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import ArrayLike, as_float_tensor, require_dimension, require_unit

CHUNK_NUMBERS = 1 << 22
"""Coordinates that are converted to float64 at once: 32 MB, whatever the number of points."""


@dataclass(frozen=True)
class WeightedPoints:
    """Points with k weightings: the data of k fits.

    points: (k, n, d), or (1, n, d) if all weightings share them; weights: (k, n) float64.
    batch_shape: the leading dimensions of the results, with k entries.
    """

    points: Tensor
    weights: Tensor
    batch_shape: torch.Size

    @classmethod
    def batched(cls, points: ArrayLike, weights: ArrayLike | None) -> Self:
        """Return one weighting of each batch of points; points: (*batch, n, d)."""
        rows = _as_points(points)
        batch = rows.shape[:-2]
        flat = rows.reshape(-1, *rows.shape[-2:])
        return cls(flat, _as_weights(weights, rows.shape[:-1], flat), batch)

    @classmethod
    def shared(cls, points: ArrayLike, weights: ArrayLike) -> Self:
        """Return k weightings, (k, n), of the same points, (n, d)."""
        rows = _as_points(points)
        if rows.dim() != 2:
            raise SteradError(
                f"points have shape {tuple(rows.shape)}, but all weightings share one set of "
                "points: give (n, d) here, or use fit for batches of points"
            )
        given = as_float_tensor("weights", weights)
        if given.dim() != 2 or given.shape[1] != len(rows):
            raise SteradError(
                f"weights have shape {tuple(given.shape)}, but there are {len(rows)} points: "
                f"give (k, {len(rows)}), one row for each law"
            )
        flat = rows.unsqueeze(0)
        return cls(flat, _as_weights(given, given.shape, flat), given.shape[:1])

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point."""
        return self.points.shape[-1]

    @property
    def count(self) -> Tensor:
        """The sum of the weights: (k,)."""
        return self.weights.sum(-1)

    def chunks(self, size: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield unit rows in float64 with their weights: (k or 1, rows, d) and (k, rows)."""
        rows = size or max(1, CHUNK_NUMBERS // max(1, len(self.points) * self.dimension))
        for points, weights in zip(
            self.points.split(rows, 1), self.weights.split(rows, 1), strict=True
        ):
            # Rows normalized in float32 have lengths that are wrong by 1e-7; this removes it.
            yield torch.nn.functional.normalize(to_double(points), dim=-1), weights

    def resultant(self) -> Tensor:
        """Return the weighted sum of the points: (k, d) float64."""
        return torch.stack([gather(weights, rows) for rows, weights in self.chunks()]).sum(0)

    def scatter(self) -> Tensor:
        """Return the weighted sum of the outer products of the points: (k, d, d) float64."""
        total = torch.zeros((), dtype=torch.float64, device=self.weights.device)
        for rows, weights in self.chunks():
            total = total + outer_sum(weights, rows)
        return total


def outer_sum(coefficients: Tensor, rows: Tensor) -> Tensor:
    """Return the sums of outer products of rows, (k or 1, n, d), with coefficients (k, n)."""
    return (rows * coefficients.unsqueeze(-1)).mT @ rows


def project(rows: Tensor, directions: Tensor) -> Tensor:
    """Return the products of rows, (k or 1, n, d), with a direction each, (k, d): (k, n)."""
    if len(rows) == 1:
        return directions @ rows[0].mT
    return (rows @ directions.unsqueeze(-1)).squeeze(-1)


def gather(coefficients: Tensor, rows: Tensor) -> Tensor:
    """Return the sums of rows, (k or 1, n, d), with coefficients (k, n): (k, d)."""
    if len(rows) == 1:
        return coefficients @ rows[0]
    return (coefficients.unsqueeze(-2) @ rows).squeeze(-2)


def _as_points(points: ArrayLike) -> Tensor:
    rows = as_float_tensor("points", points).detach()
    if rows.dim() < 2 or 0 in rows.shape:
        raise SteradError(
            f"points have shape {tuple(rows.shape)}: give (n, d) unit rows, with at least one row"
        )
    require_dimension(rows.shape[-1])
    require_unit("points", rows)
    return rows


def _as_weights(weights: ArrayLike | None, shape: torch.Size, points: Tensor) -> Tensor:
    """Return weights of `shape` as (k, n) float64, ones by default."""
    if weights is None:
        weights = torch.ones(shape, dtype=torch.float64)
    given = to_double(as_float_tensor("weights", weights).detach())
    if given.shape != shape:
        raise SteradError(
            f"weights have shape {tuple(given.shape)}, but the points need {tuple(shape)}: "
            "give one weight for each point"
        )
    valid = (given >= 0) & given.isfinite()
    if not bool(valid.all()):
        raise SteradError(
            f"a weight is {float(given[~valid][0]):.6g}, but weights must be finite and at least 0"
        )
    if bool((given.sum(-1) == 0).any()):
        raise SteradError(
            "all weights of a fit are zero: give at least one point a positive weight"
        )
    device = points.device if points.device.type != "mps" else torch.device("cpu")
    return given.reshape(-1, shape[-1]).to(device)
