import math

import mpmath as mp
import pytest
import scipy.special
import scipy.stats
import torch

from sterad.sphere import VonMisesFisher
from sterad.sphere.von_mises_fisher import log_cosine_mgf

CONCENTRATIONS = [0.0, 1e-6, 1e-3, 1.0, 7.14, 100.0, 1e4]


def exact(dimension: int, kappa: float) -> tuple[float, float]:
    """Return log(Γ(ν+1)(2/κ)^ν I_ν(κ)) and I_{ν+1}(κ)/I_ν(κ), both from Bessel's series."""
    if kappa == 0:
        return 0.0, 0.0
    with mp.workdps(60):
        k, order = mp.mpf(kappa), mp.mpf(dimension) / 2 - 1
        below, above = mp.besseli(order, k), mp.besseli(order + 1, k)
        log_mgf = mp.loggamma(order + 1) + order * mp.log(2 / k) + mp.log(below)
        return float(log_mgf), float(above / below)


@pytest.mark.parametrize("dimension", [2, 3, 4, 16, 128, 512, 2048, 4096])
def test_normalizer_and_its_slope(dimension: int) -> None:
    kappa = torch.tensor(CONCENTRATIONS, dtype=torch.float64, requires_grad=True)
    value = log_cosine_mgf(kappa, dimension)
    (slope,) = torch.autograd.grad(value.sum(), kappa)
    lengths = VonMisesFisher(torch.eye(dimension, dtype=torch.float64)[0], kappa.detach())
    rows = zip(CONCENTRATIONS, value, slope, lengths.mean_resultant_length, strict=True)
    for k, found, found_slope, length in rows:
        expected, ratio = exact(dimension, k)
        assert found.item() == pytest.approx(expected, rel=1e-10, abs=1e-10)
        assert found_slope.item() == pytest.approx(ratio, rel=1e-10, abs=1e-12)
        assert length.item() == pytest.approx(ratio, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("dimension", [2, 3, 16, 128])
def test_against_scipy_where_it_does_not_underflow(dimension: int) -> None:
    order = dimension / 2 - 1
    for kappa in (1.0, 10.0, 100.0):
        bessel = scipy.special.ive(order, kappa)
        assert bessel > 1e-290
        log_mgf = math.lgamma(order + 1) + order * math.log(2 / kappa) + math.log(bessel) + kappa
        found = log_cosine_mgf(torch.tensor(kappa, dtype=torch.float64), dimension).item()
        assert found == pytest.approx(log_mgf, rel=1e-10, abs=1e-10)
        pole = torch.eye(dimension, dtype=torch.float64)[0]
        expected = scipy.stats.vonmises_fisher(pole.numpy(), kappa)
        law = VonMisesFisher(pole, kappa)
        assert law.log_prob(pole).item() == pytest.approx(expected.logpdf(pole.numpy()), rel=1e-9)
        assert law.entropy().item() == pytest.approx(expected.entropy(), rel=1e-8, abs=1e-8)


def test_kl_divergence() -> None:
    poles = torch.nn.functional.normalize(
        torch.randn(2, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64), dim=1
    )
    p, q = VonMisesFisher(poles[0], 6.0), VonMisesFisher(poles[1], 2.0)
    draws = p.sample(torch.Size([200_000]), generator=torch.Generator().manual_seed(1))
    gap = p.log_prob(draws) - q.log_prob(draws)
    exact_gap = torch.distributions.kl_divergence(p, q).item()
    assert abs(gap.mean().item() - exact_gap) < 5 * gap.std().item() / math.sqrt(len(draws))
    assert torch.distributions.kl_divergence(p, p).item() == pytest.approx(0, abs=1e-14)


def test_on_the_circle_it_equals_torch_von_mises() -> None:
    angles = torch.linspace(-3, 3, 7, dtype=torch.float64)
    points = torch.stack([angles.cos(), angles.sin()], 1)
    found = VonMisesFisher(torch.tensor([1.0, 0.0], dtype=torch.float64), 2.5).log_prob(points)
    zero = torch.zeros((), dtype=torch.float64)
    expected = torch.distributions.VonMises(zero, zero + 2.5).log_prob(angles)
    assert torch.allclose(found, expected, rtol=1e-6)  # the series of torch has seven digits
