"""Divergences: closed forms and samples; test_references.py has values of mpmath."""

import math
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import kl_divergence

from sterad.sphere import (
    AngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    RotationalLaw,
    SphericalCauchy,
    Uniform,
    VonMisesFisher,
    Watson,
)
from sterad.sphere.divergence import mean_log_ratio
from tests.sphere import oracle

LAWS: list[tuple[Any, dict[str, float]]] = [
    (VonMisesFisher, {}),
    (PowerSpherical, {}),
    (SphericalCauchy, {}),
    (AngularGaussian, {}),
    (ProjectedStudentT, {"df": 2.5}),
    (Watson, {}),
]


def direction(dimension: int, angle: float) -> Tensor:
    pole = torch.zeros(dimension, dtype=torch.float64)
    pole[0], pole[1] = math.cos(angle), math.sin(angle)
    return pole


@pytest.mark.parametrize("dimension", oracle.DIMENSIONS)
def test_quadrature_equals_the_closed_form(dimension: int) -> None:
    kappa = torch.tensor([0.5, 5.0, dimension, 40.0 * dimension], dtype=torch.float64)
    p = VonMisesFisher(direction(dimension, 0.0), kappa)
    q = VonMisesFisher(direction(dimension, 0.7), 2 * kappa.flip(0))
    expected = kl_divergence(p, q)
    assert torch.allclose(mean_log_ratio(p, q), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("first", "second"),
    [(a, b) for a, b in product(LAWS, LAWS) if "df" not in b[1]],
    ids=lambda pair: pair[0].__name__,
)
def test_every_pair_agrees_with_samples(
    first: tuple[Any, dict[str, float]], second: tuple[Any, dict[str, float]]
) -> None:
    p: RotationalLaw = first[0](direction(4, 0.0), 3.0, **first[1])
    q: RotationalLaw = second[0](direction(4, 1.2), 2.0, **second[1])
    points = p.sample(torch.Size([4000]), generator=torch.Generator().manual_seed(3))
    gap = p.log_prob(points) - q.log_prob(points)
    error = float(gap.std()) / math.sqrt(len(gap))
    assert abs(float(gap.mean() - kl_divergence(p, q))) < 4 * error
    assert kl_divergence(p, p).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("first", LAWS, ids=lambda pair: pair[0].__name__)
def test_towards_heavy_tails_agrees_with_samples(first: tuple[Any, dict[str, float]]) -> None:
    test_every_pair_agrees_with_samples(first, (ProjectedStudentT, {"df": 2.5}))


@pytest.mark.parametrize(("law", "shape"), LAWS[:4])
def test_uniform(law: Any, shape: dict[str, float]) -> None:
    found = law(direction(5, 0.0), torch.tensor([1e-3, 2.0]), **shape)
    there, back = kl_divergence(found, Uniform(5)), kl_divergence(Uniform(5), found)
    assert there.shape == back.shape == (2,)
    assert bool((there >= -1e-7).all() & (back >= -1e-7).all())
    # Both are half the same quadratic form for small concentrations.
    assert there[0].item() == pytest.approx(back[0].item(), abs=1e-7)
    assert kl_divergence(Uniform(5), Uniform(5)).item() == 0


def test_gradients() -> None:
    angle = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    kappa = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)

    def value(angle: Tensor, kappa: Tensor) -> Tensor:
        pole = torch.stack([angle.cos(), angle.sin(), torch.zeros_like(angle)])
        p = PowerSpherical(direction(3, 0.0), kappa[0])
        return kl_divergence(p, SphericalCauchy(pole, kappa[1], validate_args=False))

    assert torch.autograd.gradcheck(value, (angle, kappa))


def test_refusals() -> None:
    law = VonMisesFisher(direction(3, 0.0), 1.0)
    with pytest.raises(ValueError, match="3 and 4 dimensions"):
        kl_divergence(law, PowerSpherical(direction(4, 0.0), 1.0))
