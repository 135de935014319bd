import numpy as np
import pytest
import torch

from sterad.sphere.polynomial import Polynomial, chebyshev_coefficients


@pytest.mark.parametrize(("rate", "horner"), [(0.1, True), (30.0, False)])
def test_both_rules_follow_the_function(rate: float, horner: bool) -> None:
    series = chebyshev_coefficients(lambda t: 1 / (1 + rate * t**2), 256)
    fitted = Polynomial.fit(series, 1e-15, 1e-10)
    assert (fitted.powers is not None) is horner
    t = torch.linspace(-1, 1, 101, dtype=torch.float64, requires_grad=True)
    value = fitted(t)
    (slope,) = torch.autograd.grad(value.sum(), t)
    at = t.detach()
    assert torch.allclose(value, 1 / (1 + rate * at**2), atol=1e-12)
    assert torch.allclose(slope, -2 * rate * at / (1 + rate * at**2) ** 2, atol=1e-9)


def test_powers_are_left_where_they_would_cancel() -> None:
    assert Polynomial(np.array([1.0, 0.5, 0.1])).powers is not None
    assert Polynomial(np.ones(40)).powers is None


def test_a_constant_has_no_slope() -> None:
    t = torch.zeros(3, requires_grad=True)
    value = Polynomial(np.array([2.0]))(t)
    assert value.tolist() == [2, 2, 2]
    assert torch.autograd.grad(value.sum(), t)[0].tolist() == [0, 0, 0]
