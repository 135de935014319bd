import pytest
import torch

from sterad.sphere import SphericalCauchy, VonMisesFisher

COSINES = torch.linspace(-1, 1, 9, dtype=torch.float64)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.95])
@pytest.mark.parametrize("dimension", [2, 3, 40])
def test_log_density_in_the_parameter_of_the_authors(rho: float, dimension: int) -> None:
    law = SphericalCauchy.from_rho(torch.eye(dimension, dtype=torch.float64)[0], rho)
    ratio = (1 - rho**2) / (1 + rho**2 - 2 * rho * COSINES)
    assert torch.allclose(law.log_kernel(COSINES), (dimension - 1) * ratio.log(), atol=1e-12)
    assert law.rho.item() == pytest.approx(rho, abs=1e-12)


def test_mean_resultant_length_on_the_circle_is_rho() -> None:
    law = SphericalCauchy.from_rho(torch.eye(2, dtype=torch.float64)[0], 0.6)
    assert law.mean_resultant_length.item() == pytest.approx(0.6, abs=1e-12)


def test_slope_at_the_mode_equals_that_of_von_mises_fisher() -> None:
    slopes = []
    for law in (SphericalCauchy, VonMisesFisher):
        t = torch.ones((), dtype=torch.float64, requires_grad=True)
        value = law(torch.eye(7, dtype=torch.float64)[0], 3.0).log_kernel(t)
        slopes.append(torch.autograd.grad(value, t)[0].item())
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-12)
