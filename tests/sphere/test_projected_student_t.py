import mpmath as mp
import pytest
import torch

from sterad.sphere import AngularGaussian, ProjectedStudentT
from tests.sphere import oracle

COSINES = [-1.0, -0.3, 0.0, 0.6, 1.0]


def exact(cosine: float, kappa: float, df: float, dimension: int) -> float:
    """Return log g by Gauss's hypergeometric function, whose terms are all positive."""
    with mp.workdps(oracle.DIGITS):
        return float(oracle.projected_student_t(kappa, dimension, df)(mp.mpf(cosine)))


@pytest.mark.parametrize("dimension", [2, 5, 64, 512])
@pytest.mark.parametrize("df", [0.7, 3.0, 40.0])
def test_log_density(dimension: int, df: float) -> None:
    for kappa in (0.5, 5.0, 30.0):
        law = ProjectedStudentT(torch.eye(dimension, dtype=torch.float64)[0], kappa, df)
        found = law.log_kernel(torch.tensor(COSINES, dtype=torch.float64))
        for cosine, value in zip(COSINES, found.tolist(), strict=True):
            assert value == pytest.approx(exact(cosine, kappa, df, dimension), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("dimension", [2, 16, 512])
def test_angular_gaussian_is_the_limit_of_many_degrees_of_freedom(dimension: int) -> None:
    pole = torch.eye(dimension, dtype=torch.float64)[0]
    cosines = torch.tensor(COSINES, dtype=torch.float64)
    gaussian = AngularGaussian(pole, 2.0).log_kernel(cosines)
    gaps = [
        (ProjectedStudentT(pole, 2.0, df).log_kernel(cosines) - gaussian).abs().max().item()
        for df in (1e3, 1e4, 1e5)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-4 + 2e-5 * dimension


def test_tails_are_heavier_than_those_of_the_angular_gaussian() -> None:
    pole = torch.eye(8, dtype=torch.float64)[0]
    antipode = torch.tensor(-1.0, dtype=torch.float64)
    heavy = ProjectedStudentT(pole, 6.0, 2.0).log_kernel(antipode)
    assert heavy > AngularGaussian(pole, 6.0).log_kernel(antipode) + 5


def test_slope_in_the_degrees_of_freedom() -> None:
    pole = torch.eye(4, dtype=torch.float64)[0]
    df = torch.tensor([1.5, 6.0], dtype=torch.float64, requires_grad=True)

    def value(df: torch.Tensor) -> torch.Tensor:
        cosine = torch.tensor(0.4, dtype=torch.float64)
        return ProjectedStudentT(pole, 2.0, df, validate_args=False).log_kernel(cosine)

    assert torch.autograd.gradcheck(value, (df,))
    assert torch.autograd.gradgradcheck(value, (df,))
