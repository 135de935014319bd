"""Covariance matrices of laws on the sphere: factors, scale, and what a fit needs."""

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere.weighted_points import WeightedPoints

NOT_POSITIVE_DEFINITE = (
    "the covariance is not positive definite: give a symmetric matrix with positive eigenvalues "
    "(add a multiple of the identity if it is nearly so)"
)
MIN_EIGENVALUE = 1e-12
"""Smallest eigenvalue of the mean outer product of points that span the space."""


def cholesky_or_error(matrix: Tensor) -> Tensor:
    """Return the lower Cholesky factor, or raise a SteradError.

    >>> cholesky_or_error(torch.tensor([[4.0, 0.0], [0.0, 9.0]])).diagonal()
    tensor([2., 3.])
    """
    try:
        factor: Tensor = torch.linalg.cholesky(matrix)
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
        raise SteradError(NOT_POSITIVE_DEFINITE) from error
    return factor


def unit_determinant(matrix: Tensor) -> Tensor:
    """Return the multiple of each positive definite matrix that has determinant 1.

    >>> unit_determinant(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
    tensor([[2.0000, 0.0000],
            [0.0000, 0.5000]])
    """
    log_det = 2 * cholesky_or_error(matrix).diagonal(dim1=-2, dim2=-1).log().sum(-1)
    scaled: Tensor = matrix * torch.exp(-log_det / matrix.shape[-1])[..., None, None]
    return scaled


def require_full_rank(name: str, data: WeightedPoints) -> None:
    """Raise if points do not determine a covariance: too few, or in a subspace."""
    d = data.dimension
    used = int((data.weights > 0).sum(-1).min())
    if used <= d:
        raise SteradError(
            f"{name} fits a covariance of {d} dimensions to {used} points with positive weight: "
            f"give at least {d + 1} points, or fit a law with one concentration"
        )
    values = torch.linalg.eigvalsh(data.scatter() / data.count[:, None, None])
    if bool((values[:, 0] < MIN_EIGENVALUE).any()):
        raise SteradError(
            f"the points lie in a subspace of fewer than {d} dimensions, where the likelihood of "
            f"{name} is unbounded: project them on that subspace, or fit a law with one "
            "concentration"
        )
