"""Tests of every SphericalLaw; a new law is one line in LAWS_UNDER_TEST."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from sterad.sphere import (
    LAWS,
    AngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphericalCauchy,
    SphericalLaw,
    Uniform,
    VonMisesFisher,
    log_area,
)
from sterad.testing.law import check_law

LAWS_UNDER_TEST: list[tuple[type[SphericalLaw], dict[str, float]]] = [
    (AngularGaussian, {}),
    (VonMisesFisher, {}),
    (PowerSpherical, {}),
    (SphericalCauchy, {}),
    (ProjectedStudentT, {"df": 2.5}),
]

each_law = pytest.mark.parametrize(
    ("law", "shape"), LAWS_UNDER_TEST, ids=[law.__name__ for law, _ in LAWS_UNDER_TEST]
)


def build(
    law: type[SphericalLaw],
    dimension: int,
    concentration: float | torch.Tensor,
    shape: dict[str, float],
) -> SphericalLaw:
    make: Any = law
    built: SphericalLaw = make(torch.eye(dimension, dtype=torch.float64)[0], concentration, **shape)
    return built


def test_every_registered_law_is_tested() -> None:
    assert {LAWS[name] for name in LAWS} == {law for law, _ in LAWS_UNDER_TEST}


@each_law
@pytest.mark.parametrize("dimension", [2, 3, 16])
def test_contract(law: type[SphericalLaw], shape: dict[str, float], dimension: int) -> None:
    check_law(law, (dimension,), (0.0, 0.7, 20.0), draws=100_000, **shape)


@pytest.mark.slow
@each_law
def test_contract_in_many_dimensions(law: type[SphericalLaw], shape: dict[str, float]) -> None:
    check_law(law, (128, 512), (1.0, 100.0), draws=20_000, **shape)


@each_law
@pytest.mark.parametrize("dimension", [2, 3, 4, 16, 128, 512, 2048, 4096])
def test_values_and_slopes_are_finite(
    law: type[SphericalLaw], shape: dict[str, float], dimension: int
) -> None:
    cosine = torch.tensor([-1, -0.5, 0, 0.5, 1], dtype=torch.float64, requires_grad=True)
    for concentration in (0.0, 1e-3, 1.0, 100.0, 1e4):
        found = build(law, dimension, concentration, shape)
        value = found.log_kernel(cosine)
        (slope,) = torch.autograd.grad(value.sum(), cosine)
        assert value.isfinite().all()
        assert slope.isfinite().all()
        assert 0 <= float(found.mean_resultant_length) <= 1


@each_law
@pytest.mark.parametrize("dimension", [2, 16])
def test_entropy_is_minus_the_mean_log_density(
    law: type[SphericalLaw], shape: dict[str, float], dimension: int
) -> None:
    found = build(law, dimension, 4.0, shape)
    count = 5_000 if shape else 40_000  # a density with df needs 373 nodes
    draws = found.sample(torch.Size([count]), generator=torch.Generator().manual_seed(1))
    surprise = -found.log_prob(draws)
    error = float(surprise.std()) / count**0.5
    assert abs(float(surprise.mean() - found.entropy())) < 5 * error
    assert float(found.entropy()) < log_area(dimension)


@each_law
def test_kl_to_the_uniform_law(law: type[SphericalLaw], shape: dict[str, float]) -> None:
    found = build(law, 5, 3.0, shape)
    divergence = torch.distributions.kl_divergence(found, Uniform(5))
    assert torch.allclose(divergence, log_area(5) - found.entropy())


@each_law
def test_rsample_has_the_gradient_of_the_mean(
    law: type[SphericalLaw], shape: dict[str, float]
) -> None:
    if not law.has_rsample:
        with pytest.raises(NotImplementedError, match="no reparametrized sampler"):
            build(law, 3, 1.0, shape).rsample()
        return
    kappa = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    found = build(law, 6, kappa, shape)
    draws = found.rsample(torch.Size([100_000]), generator=torch.Generator().manual_seed(0))
    (estimated,) = torch.autograd.grad(draws[:, 0].mean(), kappa)
    (exact,) = torch.autograd.grad(found.mean_resultant_length, kappa)
    assert torch.allclose(estimated, exact, rtol=0.03)


@each_law
def test_draws_depend_on_the_generator_only(
    law: type[SphericalLaw], shape: dict[str, float]
) -> None:
    found = build(law, 4, 2.0, shape)
    torch.manual_seed(0)
    first = found.sample(torch.Size([8]), generator=torch.Generator().manual_seed(5))
    torch.manual_seed(1)
    second = found.sample(torch.Size([8]), generator=torch.Generator().manual_seed(5))
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AngularGaussian(torch.tensor([2.0, 0.0]), 1.0), "length 2, .*normalize"),
        (lambda: VonMisesFisher(torch.eye(3)[0], -1.0), "concentration is -1, .*at least 0"),
        (lambda: VonMisesFisher(torch.eye(3)[0], torch.inf), "concentration is inf, .*finite"),
        (lambda: AngularGaussian(torch.ones(1), 1.0), "dimension is 1, .*2 or more"),
        (lambda: ProjectedStudentT(torch.eye(3)[0], 1.0, 0.0), "df is 0, .*above 0"),
        (
            lambda: AngularGaussian(torch.eye(3)[0], 1.0).log_prob(torch.ones(3)),
            "value has length 1.73205, .*unit sphere",
        ),
    ],
)
def test_invalid_input_raises(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
