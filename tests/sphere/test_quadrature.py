import math

import mpmath as mp
import pytest
import torch

from sterad.sphere.quadrature import log_chi_mgf


@pytest.mark.parametrize("dimension", [2, 3, 7, 8, 63, 64, 1000])
def test_cumulants_of_chi_at_zero(dimension: int) -> None:
    gamma = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (mean,) = torch.autograd.grad(log_chi_mgf(gamma, dimension), gamma, create_graph=True)
    (variance,) = torch.autograd.grad(mean, gamma, create_graph=True)
    (third,) = torch.autograd.grad(variance, gamma)
    log_ratio = math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2)
    first = math.sqrt(2) * math.exp(log_ratio)
    assert mean.item() == pytest.approx(first, rel=1e-12)
    assert variance.item() == pytest.approx(dimension - first**2, rel=1e-9)
    expected = first * (1 - 2 * (dimension - first**2))
    assert third.item() == pytest.approx(expected, rel=1e-5)


def test_mean_of_chi_satisfies_its_riccati_equation() -> None:
    gamma = torch.linspace(-50, 50, 101, dtype=torch.float64, requires_grad=True)
    for dimension in (2, 5, 40, 600):
        total = log_chi_mgf(gamma, dimension).sum()
        (mean,) = torch.autograd.grad(total, gamma, create_graph=True)
        (variance,) = torch.autograd.grad(mean.sum(), gamma)
        expected = dimension + gamma * mean - mean.square()
        assert torch.allclose(variance, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("gamma", [-1e4, 1e4])
def test_log_chi_mgf_at_large_arguments(gamma: float) -> None:
    with mp.workdps(50):
        density = lambda r: r**4 * mp.exp(-r * r / 2 + gamma * r)  # noqa: E731
        peak = (gamma + mp.sqrt(mp.mpf(gamma) ** 2 + 16)) / 2
        nodes = [0, *(peak * mp.mpf(x) for x in ("0.5", "1", "2", "8"))]
        if gamma > 0:
            nodes = [peak - 40, peak - 10, peak, peak + 10, peak + 40]
        else:
            nodes += [peak * 40]
        integral = mp.quad(density, nodes) / (2 ** mp.mpf("1.5") * mp.gamma(2.5))
        expected = float(mp.log(integral))
    found = log_chi_mgf(torch.tensor(gamma, dtype=torch.float64), 5).item()
    assert found == pytest.approx(expected, rel=1e-12)
