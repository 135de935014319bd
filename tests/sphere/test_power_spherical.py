import mpmath as mp
import pytest
import torch

from sterad.sphere import PowerSpherical


@pytest.mark.parametrize("dimension", [2, 3, 16, 512, 4096])
@pytest.mark.parametrize("kappa", [1e-6, 1.0, 100.0])
def test_log_density(dimension: int, kappa: float) -> None:
    law = PowerSpherical(torch.eye(dimension, dtype=torch.float64)[0], kappa)
    for cosine in (-0.9, 0.0, 1.0):
        with mp.workdps(50):
            half, k = mp.mpf(dimension - 1) / 2, mp.mpf(kappa)
            mean = mp.loggamma(half + k) + mp.loggamma(2 * half)
            mean -= mp.loggamma(half) + mp.loggamma(2 * half + k)
            expected = float(k * mp.log((1 + mp.mpf(cosine)) / 2) - mean)
        found = law.log_kernel(torch.tensor(cosine, dtype=torch.float64)).item()
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_log_density_at_the_antipode_is_finite_even_below_minus_one() -> None:
    law = PowerSpherical(torch.eye(3, dtype=torch.float64)[0], 2.0)
    edge = torch.tensor([-1.0 - 1e-15, -1.0], dtype=torch.float64)
    assert law.log_kernel(edge).isfinite().all()
    assert (law.log_kernel(edge) < -70).all()
