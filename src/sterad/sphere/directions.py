"""Where the classes stand on the sphere: fixed, moving with the batch, or learned."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.errors import SteradError
from sterad.sphere.constraints import require_dimension

MeanForm = Literal["direction", "mean", "share"]


def standard_basis(classes: int, dimension: int | None = None) -> Tensor:
    """Return the first `classes` basis vectors: (classes, d) rows, √2 apart; d grows with them.

    >>> standard_basis(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    dimension = classes if dimension is None else dimension
    _require_room(classes, dimension, classes, "the standard basis")
    return torch.eye(classes, dimension)


def regular_simplex(classes: int, dimension: int | None = None) -> Tensor:
    """Return the vertices of a regular simplex: (classes, d) rows, cosines -1/(classes - 1).

    One dimension fewer than classes is enough, and no set of directions is farther apart.

    >>> vertices = regular_simplex(3)
    >>> vertices.shape, bool((vertices @ vertices.T)[0, 1].sub(-0.5).abs() < 1e-6)
    (torch.Size([3, 2]), True)
    """
    dimension = max(2, classes - 1) if dimension is None else dimension
    _require_room(classes, dimension, classes - 1, "a regular simplex")
    m = classes - 1
    last = torch.full((1, m), (1 - (1 + m) ** 0.5) / max(m, 1), dtype=torch.float64)
    vertices = torch.cat([torch.eye(m, dtype=torch.float64), last])
    vertices = normalize(vertices - vertices.mean(0), dim=1)
    room = torch.zeros(classes, dimension - m, dtype=torch.float64)
    return torch.cat([vertices, room], 1).float()


def random_orthonormal(classes: int, dimension: int, generator: torch.Generator) -> Tensor:
    """Return orthonormal rows drawn uniformly: (classes, d).

    >>> rows = random_orthonormal(2, 4, torch.Generator().manual_seed(0))
    >>> bool((rows @ rows.T - torch.eye(2)).abs().max() < 1e-6)
    True
    """
    _require_room(classes, dimension, classes, "an orthonormal set")
    noise = torch.randn(dimension, classes, generator=generator, dtype=torch.float64)
    q, r = torch.linalg.qr(noise)
    # Without the signs of r the law of q would not be uniform.
    rows: Tensor = (q * r.diagonal().sign()).T.float()
    return rows


def moving_means(z: Tensor, labels: Tensor, classes: int, form: MeanForm = "direction") -> Tensor:
    """Return the spherical mean of each class of the batch: (classes, d), gradients included.

    z: (n, d) unit rows; labels: (n,) int64. Classes that are absent get zeros, which a loss over
    the classes of the batch never reads. "direction" has unit length; "mean" is not normalized;
    "share" is the mean times the share of the class in the batch, the sum over n.

    >>> moving_means(torch.eye(2), torch.tensor([0, 0]), 1, "mean")
    tensor([[0.5000, 0.5000]])
    """
    total = z.new_zeros(classes, z.shape[1]).index_add(0, labels, z)
    if form == "direction":
        return normalize(total, dim=1)
    if form == "share":
        return total / len(z)
    count = torch.bincount(labels, minlength=classes).clamp_min(1)
    return total / count.unsqueeze(1)


class LearnedDirections(torch.nn.Module):
    """Directions that are parameters of the network; calling it gives (classes, d) unit rows.

    >>> LearnedDirections(3, 8, torch.Generator().manual_seed(0))().shape
    torch.Size([3, 8])
    """

    def __init__(self, classes: int, dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        require_dimension(dimension)
        self.weight = torch.nn.Parameter(torch.randn(classes, dimension, generator=generator))

    def forward(self) -> Tensor:
        """Return the directions, normalized."""
        return normalize(self.weight, dim=1)


def _require_room(classes: int, dimension: int, needed: int, what: str) -> None:
    require_dimension(dimension)
    if classes < 1 or dimension < needed:
        raise SteradError(
            f"{classes} classes in {dimension} dimensions have no room: {what} of {classes} needs "
            f"{max(needed, 2)} dimensions or more, and at least 1 class"
        )
