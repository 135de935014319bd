"""Gradients of samples against the derivative of the exact expectation."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.sphere import SphericalLaw, VonMisesFisher, Watson
from sterad.sphere.law import draw_symmetric_beta
from sterad.sphere.reparametrization import reparametrize

Draw = Callable[[Tensor, int, int, torch.Generator], Tensor]


def implicit_cosine(kappa: Tensor, dimension: int, count: int, rng: torch.Generator) -> Tensor:
    """Draw cosines as VonMisesFisher.rsample does."""
    law = VonMisesFisher(torch.eye(dimension, dtype=torch.float64)[0], kappa)
    with torch.no_grad():
        cosine = law.sample_cosine(torch.Size([count]), rng)
    return reparametrize(law, cosine)


def rejection_cosine(kappa: Tensor, dimension: int, count: int, rng: torch.Generator) -> Tensor:
    """Draw by Wood's rejection and differentiate the accepted proposals: biased.

    w = (1 - (1 + b) β)/(1 - (1 - b) β) with b = p/(2κ + √(p² + 4κ²)); the derivative of b alone is
    taken, as if acceptance did not depend on κ.
    """
    p = dimension - 1
    root = torch.sqrt(p * p + 4 * kappa.square())
    b, top = p / (2 * kappa + root), 2 * kappa / (p + root)
    accepted: list[Tensor] = []
    while sum(len(x) for x in accepted) < count:
        beta = draw_symmetric_beta(torch.empty(count, dtype=torch.float64), p, rng)
        w = (1 - (1 + b) * beta) / (1 - (1 - b) * beta)
        excess = kappa * (w - top) + p * (torch.log1p(-top * w) - torch.log1p(-top * top))
        uniform = torch.rand(count, generator=rng, dtype=torch.float64)
        accepted.append(w[(excess >= torch.log(uniform)).detach()])
    return torch.cat(accepted)[:count]


def z_score(draw: Draw, kappa: float, dimension: int, count: int) -> float:
    """Return the error of the gradient of E[w²] in standard errors, from 100 groups of draws."""
    generator = torch.Generator().manual_seed(0)
    scalar = torch.tensor(kappa, dtype=torch.float64, requires_grad=True)
    groups = []
    for _ in range(100):
        value = draw(scalar, dimension, count // 100, generator).square().mean()
        groups.append(torch.autograd.grad(value, scalar)[0])
    estimates = torch.stack(groups)
    law = VonMisesFisher(torch.eye(dimension, dtype=torch.float64)[0], scalar)
    (exact,) = torch.autograd.grad(law._expectation(torch.square), scalar)
    return float((estimates.mean() - exact) / (estimates.std() / 10))


@pytest.mark.parametrize(("dimension", "kappa"), [(2, 1.0), (16, 5.0)])
def test_gradient_in_the_concentration(dimension: int, kappa: float) -> None:
    assert abs(z_score(implicit_cosine, kappa, dimension, 100_000)) < 4


@pytest.mark.parametrize(("dimension", "kappa"), [(3, 2.0), (16, 5.0)])
def test_differentiating_the_rejection_is_biased(dimension: int, kappa: float) -> None:
    assert abs(z_score(rejection_cosine, kappa, dimension, 100_000)) > 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "kappa"), [(2, 3.0), (3, 0.1), (3, 1000.0), (16, 3.0), (512, 0.1), (4096, 1000.0)]
)
def test_gradient_with_a_million_draws(dimension: int, kappa: float) -> None:
    assert abs(z_score(implicit_cosine, kappa, dimension, 1_000_000)) < 4


@pytest.mark.parametrize(
    ("law", "dimension"),
    [
        (VonMisesFisher, 2),
        (VonMisesFisher, 3),
        (VonMisesFisher, 5),
        pytest.param(Watson, 2, marks=pytest.mark.slow),
        pytest.param(Watson, 3, marks=pytest.mark.slow),
        pytest.param(Watson, 5, marks=pytest.mark.slow),
    ],
)
def test_gradient_of_whole_points(law: type[VonMisesFisher] | type[Watson], dimension: int) -> None:
    """E[(a·x)² + b·x] in the parameters v and κ, with the mean direction v/|v|."""
    generator = torch.Generator().manual_seed(4)
    a, b, start = torch.randn(3, dimension, generator=generator, dtype=torch.float64)
    v = start.clone().requires_grad_()
    kappa = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    estimates = []
    for _ in range(50):
        found = law(normalize(v, dim=0), kappa)
        x = found.rsample(torch.Size([400]), generator=generator)
        value = ((x @ a).square() + x @ b).mean()
        estimates.append(torch.cat([y.reshape(-1) for y in torch.autograd.grad(value, (v, kappa))]))
    found = law(normalize(v, dim=0), kappa)
    mean = found.mean
    second = found.covariance_matrix + mean.unsqueeze(1) * mean
    exact = torch.autograd.grad(a @ second @ a + b @ mean, (v, kappa))
    groups = torch.stack(estimates)
    error = groups.mean(0) - torch.cat([y.reshape(-1) for y in exact])
    assert bool((error.abs() < 4.5 * groups.std(0) / math.sqrt(50) + 1e-12).all())


@pytest.mark.parametrize("dimension", [2, 64, 4096])
def test_single_precision_and_batches(dimension: int) -> None:
    kappa = torch.tensor([[0.5], [50.0]], requires_grad=True)
    poles = torch.eye(dimension)[:2].requires_grad_()
    law = VonMisesFisher(poles, kappa)
    points = law.rsample(torch.Size([3]), generator=torch.Generator().manual_seed(0))
    assert points.shape == (3, 2, 2, dimension)
    assert points.dtype == torch.float32
    lengths = torch.linalg.vector_norm(points, dim=-1)
    assert torch.allclose(lengths, torch.ones_like(lengths), atol=1e-5)
    gradients = torch.autograd.grad(points.square().sum() + points[..., 0].sum(), (kappa, poles))
    assert all(bool(x.isfinite().all()) for x in gradients)


def test_draws_with_and_without_gradients_are_equal() -> None:
    law = VonMisesFisher(torch.eye(3)[0], torch.tensor(2.0, requires_grad=True))
    plain = law.sample(torch.Size([5]), generator=torch.Generator().manual_seed(1))
    smooth = law.rsample(torch.Size([5]), generator=torch.Generator().manual_seed(1))
    assert torch.equal(plain, smooth.detach())


def test_a_law_with_a_log_kernel_alone_has_samples_with_gradients() -> None:
    class Own(SphericalLaw):
        @staticmethod
        def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
            return VonMisesFisher.log_kernel_at(cosine, concentration, dimension)

    kappa = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    law = Own(torch.eye(3, dtype=torch.float64)[0], kappa)
    points = law.rsample(torch.Size([20_000]), generator=torch.Generator().manual_seed(0))
    (found,) = torch.autograd.grad(points[:, 0].mean(), kappa)
    (exact,) = torch.autograd.grad(law.mean_resultant_length, kappa)
    assert found.item() == pytest.approx(exact.item(), rel=0.05)
