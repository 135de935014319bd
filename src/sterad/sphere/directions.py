"""Directions of the classes on the sphere: a simplex, an orthonormal basis, or batch means."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.errors import SteradError
from sterad.sphere.constraints import require_dimension


def regular_simplex(classes: int, dimension: int | None = None) -> Tensor:
    """Return the vertices of a regular simplex: (classes, d) unit rows, d = classes - 1 by default.

    All cosines are -1/(classes - 1), the smallest that so many directions can have in common.

    >>> vertices = regular_simplex(3)
    >>> vertices.shape, bool((vertices @ vertices.T)[0, 1].sub(-0.5).abs() < 1e-6)
    (torch.Size([3, 2]), True)
    """
    m = classes - 1
    dimension = max(2, m) if dimension is None else dimension
    require_dimension(dimension)
    if not 0 <= m <= dimension:
        raise SteradError(
            f"a regular simplex of {classes} classes does not fit in {dimension} dimensions: give "
            f"at least 1 class and at least {max(m, 2)} dimensions"
        )
    # In float64 on the CPU, because the default device may be MPS, which has no float64.
    with torch.device("cpu"):
        last = torch.full((1, m), (1 - (1 + m) ** 0.5) / max(m, 1), dtype=torch.float64)
        vertices = torch.cat([torch.eye(m, dtype=torch.float64), last])
        vertices = normalize(vertices - vertices.mean(0), dim=1)
        padding = torch.zeros(classes, dimension - m, dtype=torch.float64)
    return torch.cat([vertices, padding], 1).float().to(torch.get_default_device())


def random_orthonormal(dimension: int, rng: torch.Generator) -> Tensor:
    """Return a uniformly random orthonormal basis: (dimension, dimension) float32 rows.

    The QR decomposition of a Gaussian matrix, with the signs for which R has a positive diagonal.

    >>> rows = random_orthonormal(5, torch.Generator().manual_seed(0))
    >>> bool((rows @ rows.T - torch.eye(5)).abs().max() < 1e-6)
    True
    """
    if dimension < 1:
        raise SteradError(
            f"an orthonormal basis of {dimension} dimensions is empty: give at least 1"
        )
    shape = (dimension, dimension)
    # In float64 on the CPU, because the default device may be MPS, which has no float64.
    normal = torch.randn(shape, generator=rng, dtype=torch.float64, device=rng.device).cpu()
    q, r = torch.linalg.qr(normal)
    rows: Tensor = (q * r.diagonal().sign()).T
    return rows.float().to(torch.get_default_device())


def moving_means(z: Tensor, labels: Tensor, classes: int, unit: bool = True) -> Tensor:
    """Return the mean of each class of the batch, differentiable: (classes, d).

    z: (n, d) unit rows; labels: (n,) int64; unit: whether to scale the means to unit length. Absent
    classes get zeros, which a loss over the classes of the batch does not read.

    >>> moving_means(torch.eye(2), torch.tensor([0, 0]), 1, unit=False)
    tensor([[0.5000, 0.5000]])
    """
    total = z.new_zeros(classes, z.shape[1]).index_add(0, labels, z)
    if unit:
        return normalize(total, dim=1)
    count = torch.bincount(labels, minlength=classes).clamp_min(1)
    return total / count.unsqueeze(1)
