"""The log-density as a polynomial in the cosine, for a law whose concentration is fixed."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere.constraints import require_concentration, require_dimension
from sterad.sphere.law import SphericalLaw
from sterad.sphere.polynomial import Polynomial, chebyshev_coefficients

MAX_DEGREE = 64
"""Where more would be needed (few dimensions, large concentration) direct evaluation is used."""

MAX_SPAN = 40.0
"""The sum of the coefficients up to which float32 arithmetic keeps 1e-5; above it, float64."""


class LogKernel:
    """A law's log-density relative to the uniform law, as a fast function of the cosine.

    It answers in float32 or float64; half precision goes in, float32 comes out, so that it is
    safe under autocast. Cosines lie in [-1, 1].
    """

    def __init__(
        self, law: type[SphericalLaw], concentration: float, dimension: int, **shape: float
    ) -> None:
        require_dimension(dimension)
        require_concentration(torch.tensor(concentration, dtype=torch.float64))
        self.law = law
        self.concentration = concentration
        self.dimension = dimension
        self.shape = shape
        series = chebyshev_coefficients(self._direct, 2 * MAX_DEGREE)
        span = max(1.0, float(abs(series).max()))
        fine, coarse = (torch.finfo(x).eps * span for x in (torch.float64, torch.float32))
        self._polynomials = {
            torch.float64: Polynomial.fit(series, 8 * fine, 1e-11 * span),
            torch.float32: Polynomial.fit(series, min(1e-6, coarse), 3e-6),
        }
        # Rounding in float32 grows with the span of log g; beyond this it would pass 1e-5.
        self._wide = float(abs(series).sum()) > MAX_SPAN

    def degree(self, dtype: torch.dtype = torch.float64) -> int | None:
        """Return the degree of the polynomial at a precision, or None for direct evaluation."""
        found = self._polynomials[dtype].degree
        return found if found <= MAX_DEGREE else None

    def __call__(self, cosine: Tensor) -> Tensor:
        """Return log g at `cosine`, of any shape."""
        if cosine.dtype not in self._polynomials:
            cosine = cosine.float()
        polynomial = self._polynomials[cosine.dtype]
        if polynomial.degree > MAX_DEGREE:
            return self._direct(cosine.double()).to(cosine.dtype)
        if self._wide and cosine.dtype == torch.float32:
            return polynomial(cosine.double()).float()
        return polynomial(cosine)

    def _direct(self, cosine: Tensor) -> Tensor:
        kappa = cosine.new_tensor(self.concentration)
        return self.law.log_kernel_at(cosine, kappa, self.dimension, **self.shape)

    def __repr__(self) -> str:
        return f"LogKernel({self.law.__name__}, {self.concentration}, {self.dimension})"


def kernel(
    law: type[SphericalLaw], concentration: float, dimension: int, **shape: float
) -> LogKernel:
    """Return the fast log kernel of a law with a fixed concentration; it is built once.

    `shape` holds the law's further parameters (df). Where the concentration needs a gradient,
    use the bound `log_kernel` of the law itself instead: it serves wherever a kernel does.

    >>> from sterad.sphere import AngularGaussian
    >>> fast = kernel(AngularGaussian, 0.5**0.5, 512)
    >>> fast.degree(torch.float64), fast.degree(torch.float32)
    (7, 3)
    """
    if not (isinstance(law, type) and issubclass(law, SphericalLaw)):
        raise SteradError(
            f"{law!r} has no kernel: give a law that depends on the cosine alone, "
            "a class derived from SphericalLaw"
        )
    built: LogKernel = _build(law, float(concentration), dimension, **shape)
    return built


# Any: for mypy a class is hashable only through its metaclass.
_build: Any = lru_cache(maxsize=256)(LogKernel)
