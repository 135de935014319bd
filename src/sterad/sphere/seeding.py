"""Start values of a mixture: k-means++ on cosines.

D. Arthur and S. Vassilvitskii, "k-means++: The Advantages of Careful Seeding", SODA 2007. On the
sphere half of the squared distance is 1 - cosine. Each center is the best of a few candidates. Rows
are drawn in the order of their projections on a fixed direction, so that the start depends neither
on their order nor on whether a row is repeated or has a weight.
"""

import math

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere.rows import Rows

SAME_DIRECTION = 1e-12
"""Largest 1 - cosine at which two rows count as one direction in float64."""


def choose_centers(
    rows: Rows, count: int, is_axial: bool, generator: torch.Generator, given: Tensor | None = None
) -> Tensor:
    """Return `count` rows that are far from each other: (count, d) float64.

    is_axial: whether u and -u are the same point; given: (m, d) centers to start with, m < count.
    """
    centers = [] if given is None else list(given)
    gaps = torch.ones(len(rows), dtype=torch.float64, device="cpu")
    for center in centers:
        gaps = torch.minimum(gaps, _gaps(rows, center.unsqueeze(0), is_axial)[0])
    candidates, order = 2 + int(math.log(count)), _content_order(rows)
    while len(centers) < count:
        drawn = _draw(gaps * rows.weights, order, candidates if centers else 1, generator)
        if drawn is None:
            raise SteradError(
                f"X has only {len(centers)} different directions and n_components is {count}: "
                f"set n_components to {max(1, len(centers))} or less"
            )
        tried = torch.stack([rows.row(int(index)) for index in drawn])
        nearest = torch.minimum(gaps, _gaps(rows, tried, is_axial)) if centers else None
        if nearest is None:
            gaps, best = _gaps(rows, tried, is_axial)[0], 0
        else:
            best = int((nearest @ rows.weights).argmin())
            gaps = nearest[best]
        centers.append(tried[best])
    return torch.stack(centers)


def _gaps(rows: Rows, centers: Tensor, is_axial: bool) -> Tensor:
    """Return 1 - cosine, or 1 - cosine² for axes, with each center: (m, n)."""
    gaps = torch.empty(len(centers), len(rows), dtype=torch.float64, device="cpu")
    for place, points in rows.chunks():
        cosine = centers @ points.mT
        gap = 1 - (cosine.square() if is_axial else cosine)
        gaps[:, place] = torch.where(gap > SAME_DIRECTION, gap, 0)
    return gaps


def _content_order(rows: Rows) -> Tensor:
    """Return row numbers in an order that depends on the rows alone: (n,)."""
    # Square roots have no rational relation, so that different rows rarely have equal projections.
    direction = torch.arange(1, rows.dimension + 1, dtype=torch.float64, device="cpu").sqrt().sin()
    keys = torch.empty(len(rows), dtype=torch.float64, device="cpu")
    for place, points in rows.chunks():
        keys[place] = points @ direction
    return keys.argsort(stable=True)


def _draw(masses: Tensor, order: Tensor, count: int, generator: torch.Generator) -> Tensor | None:
    """Draw row numbers with probabilities in proportion to `masses`; None if all are zero."""
    masses = masses[order]
    total = masses.cumsum(0)
    if float(total[-1]) <= 0:
        return None
    uniform = torch.rand(count, generator=generator, dtype=torch.float64, device="cpu")
    # `right` never returns a row of mass zero, unless rounding carries u to the total itself.
    index = torch.searchsorted(total, uniform * total[-1], right=True)
    last = int(masses.nonzero()[-1])
    return order[index.clamp_max(last)]
