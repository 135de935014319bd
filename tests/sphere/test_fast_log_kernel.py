import numpy as np
import pytest
import torch

from sterad.sphere import (
    AngularGaussian,
    ProjectedStudentT,
    SphericalCauchy,
    Uniform,
    VonMisesFisher,
    fast_log_kernel,
)
from sterad.sphere.fast_log_kernel import FastLogKernel, Polynomial, chebyshev_coefficients


def test_kernels_are_cached() -> None:
    assert fast_log_kernel(AngularGaussian, 0.5, 32) is fast_log_kernel(AngularGaussian, 0.5, 32)
    assert fast_log_kernel(ProjectedStudentT, 0.5, 32, df=3.0) is not fast_log_kernel(
        ProjectedStudentT, 0.5, 32, df=4.0
    )


def test_degree_depends_on_law_and_dimension() -> None:
    assert fast_log_kernel(VonMisesFisher, 7.14, 512).degree() == 1
    assert fast_log_kernel(AngularGaussian, 0.5**0.5, 512).degree() == 7
    assert 20 < (fast_log_kernel(AngularGaussian, 100.0, 4096).degree() or 0) <= 32
    assert fast_log_kernel(AngularGaussian, 0.0, 512).degree() == 0


def test_direct_evaluation_above_the_maximum_degree() -> None:
    log_kernel = fast_log_kernel(AngularGaussian, 100.0, 2)
    assert log_kernel.degree() is None
    t = torch.linspace(-1, 1, 11, dtype=torch.float64)
    direct = AngularGaussian(torch.eye(2, dtype=torch.float64)[0], 100.0).log_kernel(t)
    assert torch.equal(log_kernel(t), direct)


@pytest.mark.parametrize(
    "log_kernel",
    [
        fast_log_kernel(AngularGaussian, 0.5**0.5, 512),  # Horner
        fast_log_kernel(AngularGaussian, 10.0, 16),  # Clenshaw
        fast_log_kernel(AngularGaussian, 30.0, 3),  # direct
        fast_log_kernel(SphericalCauchy, 8.0, 64),
    ],
    ids=str,
)
def test_derivatives_and_vmap(log_kernel: FastLogKernel) -> None:
    t = torch.linspace(-0.9, 0.9, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(log_kernel, (t,))
    assert torch.autograd.gradgradcheck(log_kernel, (t,))
    assert torch.allclose(torch.func.vmap(log_kernel)(t), log_kernel(t), rtol=1e-12)
    slopes = torch.func.vmap(torch.func.grad(log_kernel))(t)
    assert torch.allclose(slopes, torch.autograd.grad(log_kernel(t).sum(), t)[0], rtol=1e-10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_input_gives_float32(dtype: torch.dtype) -> None:
    t = torch.linspace(-1, 1, 9).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = fast_log_kernel(AngularGaussian, 4.4, 512)(t)
    (slope,) = torch.autograd.grad(value.sum(), t)
    expected = fast_log_kernel(AngularGaussian, 4.4, 512)(t.detach().double())
    assert value.dtype == torch.float32
    assert slope.dtype == dtype
    assert torch.allclose(value.double(), expected, rtol=1e-5, atol=1e-5)


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match="concentration is -1"):
        fast_log_kernel(AngularGaussian, -1.0, 8)
    with pytest.raises(ValueError, match="dimension is 1"):
        fast_log_kernel(AngularGaussian, 1.0, 1)
    with pytest.raises(ValueError, match="has no kernel"):
        fast_log_kernel(Uniform, 1.0, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(("rate", "horner"), [(0.1, True), (30.0, False)])
def test_horner_and_clenshaw_approximate_the_function(rate: float, horner: bool) -> None:
    series = chebyshev_coefficients(lambda t: 1 / (1 + rate * t**2), 256)
    fitted = Polynomial.fit(series, 1e-15, 1e-10)
    assert (fitted.powers is not None) is horner
    t = torch.linspace(-1, 1, 101, dtype=torch.float64, requires_grad=True)
    value = fitted(t)
    (slope,) = torch.autograd.grad(value.sum(), t)
    at = t.detach()
    assert torch.allclose(value, 1 / (1 + rate * at**2), atol=1e-12)
    assert torch.allclose(slope, -2 * rate * at / (1 + rate * at**2) ** 2, atol=1e-9)


def test_power_coefficients_are_not_used_where_they_would_cancel() -> None:
    assert Polynomial(np.array([1.0, 0.5, 0.1])).powers is not None
    assert Polynomial(np.ones(40)).powers is None


def test_constant_polynomial_has_zero_slope() -> None:
    t = torch.zeros(3, requires_grad=True)
    value = Polynomial(np.array([2.0]))(t)
    assert value.tolist() == [2, 2, 2]
    assert torch.autograd.grad(value.sum(), t)[0].tolist() == [0, 0, 0]
