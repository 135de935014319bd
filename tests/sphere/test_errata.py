"""The errata of docs/mathematics.md: each printed formula fails, and its correction holds."""

import math

import mpmath as mp
import pytest
import torch

from sterad.losses import posterior_loss
from sterad.sphere import (
    AngularGaussian,
    GeneralAngularGaussian,
    VonMisesFisher,
    equivalent_temperature,
    fast_log_kernel,
    regular_simplex,
)

D = 3
MEAN = [mp.mpf(x) for x in ("0.7", "-0.4", "1.1")]
SIGMA = mp.matrix([["1.4", "0.3", "-0.2"], ["0.3", "0.8", "0.1"], ["-0.2", "0.1", "2.0"]])
POINT = [mp.mpf(x) for x in ("0.48", "-0.6", "0.64")]


def parts() -> tuple[mp.mpf, mp.mpf, mp.mpf, mp.mpf]:
    """Return A = uᵀΣ⁻¹u, λ² = mᵀΣ⁻¹m, uᵀΣ⁻¹m and |Σ|."""
    inverse, u, m = SIGMA**-1, mp.matrix(POINT), mp.matrix(MEAN)
    return (u.T * inverse * u)[0], (m.T * inverse * m)[0], (u.T * inverse * m)[0], mp.det(SIGMA)


def joint(r: mp.mpf, determinant: mp.mpf) -> mp.mpf:
    """Return r^{d-1} N(ru; m, Σ) with `determinant` in place of |Σ|^{1/2}."""
    x = mp.matrix([r * u - m for u, m in zip(POINT, MEAN, strict=True)])
    return r**2 * mp.exp(-(x.T * SIGMA**-1 * x)[0] / 2) / ((2 * mp.pi) ** 1.5 * determinant)


def integrated_density() -> mp.mpf:
    return mp.quad(lambda r: joint(r, mp.sqrt(mp.det(SIGMA))), [0, 1, 2, 4, 8, 20])


def radial(gamma: mp.mpf) -> mp.mpf:
    """Return I_d(γ) = (2π)^{-1/2} ∫ r^{d-1} exp(-(r - γ)²/2) dr."""
    integral = mp.quad(
        lambda r: r ** (D - 1) * mp.exp(-((r - gamma) ** 2) / 2), [0, 1, 2, 4, 8, 20]
    )
    return integral / mp.sqrt(2 * mp.pi)


def series(x: mp.mpf, dimension: int) -> mp.mpf:
    """Return Σ xⁿ Γ((d+n)/2) / (n! Γ(d/2))."""
    return mp.nsum(
        lambda n: x**n * mp.gammaprod([(dimension + n) / 2], [n + 1, mp.mpf(dimension) / 2]),
        [0, mp.inf],
    )


def mass(kappa: float, factor: mp.mpf) -> float:
    """Return the mass over the sphere in three dimensions, where the cosine is uniform."""
    density = lambda t: mp.exp(-(mp.mpf(kappa) ** 2) / 2) * series(factor * kappa * t, 3)  # noqa: E731
    return float(mp.quad(density, [-1, 0, 1], maxdegree=3) / 2)


@pytest.mark.parametrize("kappa", [1.3, 2.0])
def test_m1_saws_series_needs_two_to_the_half_n(kappa: float) -> None:
    assert mass(kappa, mp.mpf(1)) == pytest.approx(math.exp(-(kappa**2) / 4), abs=1e-6)
    assert mass(kappa, mp.sqrt(2)) == pytest.approx(1, abs=1e-6)
    law = AngularGaussian(torch.eye(3, dtype=torch.float64)[0], kappa)
    found = law.log_kernel(torch.tensor(0.3, dtype=torch.float64)).exp().item()
    expected = mp.exp(-(mp.mpf(kappa) ** 2) / 2) * series(mp.sqrt(2) * kappa * mp.mpf("0.3"), 3)
    assert found == pytest.approx(float(expected), rel=1e-12)


def test_m2_proposition_1_needs_a_root_and_half_a_power() -> None:
    a, square, cross, determinant = parts()

    def density(gamma: mp.mpf, power: mp.mpf) -> mp.mpf:
        scale = a ** (-mp.mpf(D) / 2) / ((2 * mp.pi) ** power * mp.sqrt(determinant))
        return scale * mp.exp(-(square - gamma**2) / 2) * radial(gamma)

    corrected, printed = (cross / mp.sqrt(a), mp.mpf(D - 1) / 2), (cross / a, mp.mpf(D) / 2 - 1)
    assert mp.almosteq(density(*corrected), integrated_density(), 1e-10)
    for gamma, power in (printed, (corrected[0], printed[1]), (printed[0], corrected[1])):
        assert abs(density(gamma, power) / integrated_density() - 1) > 0.05
    law = GeneralAngularGaussian(
        torch.tensor([float(x) for x in MEAN], dtype=torch.float64),
        covariance_matrix=torch.tensor(SIGMA.tolist(), dtype=torch.float64),
    )
    found = law.log_prob(torch.tensor([float(x) for x in POINT], dtype=torch.float64)).exp().item()
    assert found == pytest.approx(float(integrated_density()), rel=1e-10)


def test_m1_proposition_2_needs_the_same_root_of_two() -> None:
    a, square, cross, determinant = parts()
    gamma, half = cross / mp.sqrt(a), mp.mpf(D) / 2
    scale = mp.gamma(half) / (2 * mp.pi**half) * a**-half / mp.sqrt(determinant)
    scale *= mp.exp(-square / 2)
    assert mp.almosteq(scale * series(mp.sqrt(2) * gamma, D), integrated_density(), 1e-10)
    assert abs(scale * series(gamma, D) / integrated_density() - 1) > 0.2


def test_m3_proposition_3_has_the_wrong_exponent_and_argument() -> None:
    a, square, cross, determinant = parts()
    gamma = cross / mp.sqrt(a)
    scale = a ** (-mp.mpf(D) / 2) / ((2 * mp.pi) ** (mp.mpf(D) / 2) * mp.sqrt(determinant))

    def density(exponent: mp.mpf, argument: mp.mpf) -> mp.mpf:
        return scale * mp.exp(-square / 2 + exponent) * mp.gamma(D) * mp.pcfd(-D, argument)

    assert mp.almosteq(density(gamma**2 / 4, -gamma), integrated_density(), 1e-10)
    assert density(-(gamma**2) / 8, mp.sqrt(2) * gamma) / integrated_density() < 0.1


def test_m4_the_joint_density_needs_the_root_of_the_determinant() -> None:
    determinant = mp.det(SIGMA)
    integrand = lambda r: joint(r, determinant)  # noqa: E731
    printed = mp.quad(integrand, [0, 1, 2, 4, 8, 20])
    assert mp.almosteq(printed * mp.sqrt(determinant), integrated_density(), 1e-10)
    assert abs(printed / integrated_density() - 1) > 0.1


@pytest.mark.parametrize("law", [AngularGaussian, VonMisesFisher])
def test_m5_neither_law_is_antipodally_symmetric(
    law: type[AngularGaussian] | type[VonMisesFisher],
) -> None:
    ends = torch.tensor([1.0, -1.0], dtype=torch.float64)
    front, back = fast_log_kernel(law, 0.5**0.5, 512)(ends).tolist()
    assert front - back > 1
    if law is AngularGaussian:
        assert (front, back) == pytest.approx((15.87, -16.12), abs=0.005)


def test_m6_concentrations_of_a_variance() -> None:
    assert VonMisesFisher.concentration_of(0.14) == pytest.approx(7.14, abs=0.005)
    assert AngularGaussian.concentration_of(2.0) ** 2 == pytest.approx(0.5)
    # The paper's κ² = 7 for the first law would mean κ = 2.65.
    t = torch.ones((), dtype=torch.float64)
    correct, misread = (
        fast_log_kernel(VonMisesFisher, 1 / 0.14, 512),
        fast_log_kernel(VonMisesFisher, 7**0.5, 512),
    )
    assert abs((correct(t) - correct(-t)) / (misread(t) - misread(-t)) - 2.7) < 0.01
    # κ² = 0.2, the optimum with the printed series, means 0.1: as steep as the other optimum.
    assert equivalent_temperature(10.0, 512) == pytest.approx(1 / 0.14, abs=0.02)


def drain(remaining: list[int], least: int) -> list[int]:
    while len(remaining) >= least:
        remaining.pop(0)
    return remaining


def test_m7_the_loop_must_end_before_the_list_is_empty() -> None:
    with pytest.raises(IndexError):
        drain([1, 2, 3], least=0)
    assert drain([1, 2, 3], least=1) == []


def test_m8_the_loss_is_minus_the_log_of_the_product() -> None:
    z = torch.nn.functional.normalize(
        torch.randn(40, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64), dim=1
    )
    labels = torch.arange(40) % 8
    each = posterior_loss(z, labels, fast_log_kernel(VonMisesFisher, 5.0, 8), reduction="none")
    total = posterior_loss(z, labels, fast_log_kernel(VonMisesFisher, 5.0, 8))
    product = (-each).exp().prod()
    assert total.item() == pytest.approx(-product.log().item(), rel=1e-10)
    assert -product.item() > -1e-20  # the printed form is flat: its gradient vanishes


def test_m9_other_classes_in_the_batch_are_the_negatives() -> None:
    z = torch.eye(4, dtype=torch.float64)[[0, 1, 1]].requires_grad_()
    alone = posterior_loss(z, torch.tensor([2, 2, 2]), fast_log_kernel(AngularGaussian, 1.0, 4))
    (gradient,) = torch.autograd.grad(alone, z)
    assert alone.item() == 0
    assert gradient.abs().max() == 0
    both = posterior_loss(z, torch.tensor([2, 2, 3]), fast_log_kernel(AngularGaussian, 1.0, 4))
    assert torch.autograd.grad(both, z)[0].abs().max() > 0.1


def test_m10_simplex_directions_are_farther_apart_than_the_basis() -> None:
    basis, simplex = torch.eye(10), regular_simplex(10)
    assert (basis @ basis.T)[0, 1] == 0
    assert (simplex @ simplex.T)[0, 1].item() == pytest.approx(-1 / 9, abs=1e-6)
    assert simplex.shape == (10, 9)
