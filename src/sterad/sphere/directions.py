"""Directions of the classes on the sphere: fixed, the means of a batch, or learned."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.errors import SteradError
from sterad.sphere.constraints import require_dimension

MeanForm = Literal["direction", "mean", "share"]


def standard_basis(classes: int, dimension: int | None = None) -> Tensor:
    """Return the first `classes` basis vectors: (classes, d), d = classes by default.

    >>> standard_basis(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    dimension = classes if dimension is None else dimension
    _require_dimensions(classes, dimension, classes, "the standard basis")
    return torch.eye(classes, dimension)


def regular_simplex(classes: int, dimension: int | None = None) -> Tensor:
    """Return the vertices of a regular simplex: (classes, d) unit rows, d = classes - 1 by default.

    All cosines are -1/(classes - 1), the smallest that so many directions can have in common.

    >>> vertices = regular_simplex(3)
    >>> vertices.shape, bool((vertices @ vertices.T)[0, 1].sub(-0.5).abs() < 1e-6)
    (torch.Size([3, 2]), True)
    """
    dimension = max(2, classes - 1) if dimension is None else dimension
    _require_dimensions(classes, dimension, classes - 1, "a regular simplex")
    m = classes - 1
    # In float64 on the CPU, because the default device may be MPS, which has no float64.
    with torch.device("cpu"):
        last = torch.full((1, m), (1 - (1 + m) ** 0.5) / max(m, 1), dtype=torch.float64)
        vertices = torch.cat([torch.eye(m, dtype=torch.float64), last])
        vertices = normalize(vertices - vertices.mean(0), dim=1)
        padding = torch.zeros(classes, dimension - m, dtype=torch.float64)
    return torch.cat([vertices, padding], 1).float().to(torch.get_default_device())


def random_orthonormal(classes: int, dimension: int, generator: torch.Generator) -> Tensor:
    """Return orthonormal rows drawn uniformly by a CPU generator: (classes, d).

    >>> rows = random_orthonormal(2, 4, torch.Generator().manual_seed(0))
    >>> bool((rows @ rows.T - torch.eye(2)).abs().max() < 1e-6)
    True
    """
    _require_dimensions(classes, dimension, classes, "an orthonormal set")
    noise = torch.randn(dimension, classes, generator=generator, dtype=torch.float64, device="cpu")
    q, r = torch.linalg.qr(noise)
    # The signs of r make the distribution of q uniform: QR leaves the sign of each row open.
    rows: Tensor = (q * r.diagonal().sign()).T.float()
    return rows.to(torch.get_default_device())


def moving_means(z: Tensor, labels: Tensor, classes: int, form: MeanForm = "direction") -> Tensor:
    """Return the mean of each class of the batch, differentiable: (classes, d).

    z: (n, d) unit rows; labels: (n,) int64. form: "direction" is the mean scaled to unit length,
    "mean" the mean itself, "share" the sum over the class divided by n. Absent classes get zeros,
    which a loss over the classes of the batch does not read.

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
    """Directions as trainable parameters; the forward pass returns (classes, d) unit rows.

    >>> LearnedDirections(3, 8, torch.Generator().manual_seed(0))().shape
    torch.Size([3, 8])
    """

    def __init__(self, classes: int, dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        require_dimension(dimension)
        self.weight = torch.nn.Parameter(torch.randn(classes, dimension, generator=generator))

    def forward(self) -> Tensor:
        """Return the directions: (classes, d) unit rows."""
        return normalize(self.weight, dim=1)


def _require_dimensions(classes: int, dimension: int, needed: int, what: str) -> None:
    require_dimension(dimension)
    if classes < 1 or dimension < needed:
        raise SteradError(
            f"{what} of {classes} classes does not fit in {dimension} dimensions: give at least 1 "
            f"class and at least {max(needed, 2)} dimensions"
        )
