"""check_law: the contract of a law on the sphere, to run on your own ones too."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.sphere import LAWS, SphericalLaw, fast_log_kernel, log_area
from sterad.sphere.quadrature import log_cosh


def check_law(
    law: str | type[SphericalLaw],
    dimensions: Sequence[int] = (2, 3, 16),
    concentrations: Sequence[float] = (0.0, 0.5, 5.0),
    draws: int = 20_000,
    **shape: float,
) -> None:
    """Run all checks of the contract; an AssertionError names the one that fails.

    law: a registered name or the class itself; shape: its further parameters, such as df.

    >>> check_law("power-spherical", dimensions=(3,), concentrations=(0.0, 1.0), draws=1000)
    """
    cls = LAWS[law] if isinstance(law, str) else law
    check_variance(cls)
    for dimension in dimensions:
        made = _Maker(cls, dimension, shape)
        check_uniform_limit(made)
        check_gradients(made)
        check_refusals(made)
        for concentration in concentrations:
            check_mass(made, concentration)
            check_shapes(made, concentration)
            check_samples(made, concentration, draws)
            check_kernel(made, concentration)


class _Maker:
    """Makes a law of one dimension about the first axis, or about another pole."""

    def __init__(self, cls: type[SphericalLaw], dimension: int, shape: dict[str, float]) -> None:
        self.cls: Any = cls
        self.dimension, self.shape = dimension, shape
        self.pole = torch.eye(dimension, dtype=torch.float64)[0]
        self.name = f"{cls.__name__} in {dimension} dimensions"

    def __call__(self, concentration: Any, pole: Any = None, **given: Any) -> SphericalLaw:
        pole = self.pole if pole is None else pole
        law: SphericalLaw = self.cls(pole, concentration, **self.shape, **given)
        return law

    def masses(self, concentration: float) -> tuple[Tensor, Tensor]:
        """Return s and the mass that the law has about t = tanh(s)."""
        wide = 6 + 60 / math.sqrt(self.dimension - 1)
        s = torch.linspace(-wide, wide, 8_001, dtype=torch.float64)
        log_weights = torch.log_softmax(-(self.dimension - 1) * log_cosh(s), 0)
        return s, (log_weights + self(concentration).log_kernel(torch.tanh(s))).exp()

    def points(self, count: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.dimension)
        noise = torch.randn(count, self.dimension, generator=generator, dtype=torch.float64)
        return normalize(noise, dim=1)


def check_variance(cls: type[SphericalLaw]) -> None:
    """Check that a smaller variance means a larger concentration."""
    found = [cls.concentration_of(variance) for variance in (0.05, 0.5, 5.0)]
    falls = found == sorted(found, reverse=True) and found[-1] > 0
    assert falls, (
        f"{cls.__name__}.concentration_of gives {found} for variances 0.05, 0.5, 5: "
        "it must be positive and fall"
    )


def check_mass(made: _Maker, concentration: float) -> None:
    """Check that the density integrates to one over the sphere, and is the log_prob."""
    mass = float(made.masses(concentration)[1].sum())
    assert abs(mass - 1) < 1e-9, f"{made.name}, concentration {concentration}, has mass {mass}"
    law, points = made(concentration), made.points(5)
    expected = law.log_kernel(points[:, 0]) - log_area(made.dimension)
    same = torch.allclose(law.log_prob(points), expected, rtol=1e-10, atol=1e-10)
    assert same, f"{made.name}: log_prob is not log_kernel less the log area"


def check_uniform_limit(made: _Maker) -> None:
    """Check that concentration zero is the uniform law, and the mean direction the mode."""
    cosines = torch.linspace(-1, 1, 9, dtype=torch.float64)
    zero = made(0.0).log_kernel(cosines).abs().max()
    assert zero < 1e-9, f"{made.name}: log_kernel at concentration 0 is {float(zero)}, not 0"
    rises = bool((made(3.0).log_kernel(cosines).diff() > 0).all())
    assert rises, f"{made.name}: the density does not rise with the cosine"


def check_shapes(made: _Maker, concentration: float) -> None:
    """Check that batches, expansion and float32 behave as in torch's laws."""
    poles = made.points(3)
    law = made(torch.full((4, 1), concentration, dtype=torch.float64), poles)
    assert law.batch_shape == (4, 3), f"{made.name}: batch shape {law.batch_shape}, not (4, 3)"
    assert law.event_shape == (made.dimension,), f"{made.name}: event shape {law.event_shape}"
    wide = law.expand(torch.Size([2, 4, 3])).log_prob(poles)
    assert wide.shape == (2, 4, 3), f"{made.name}: expand does not expand"
    same = torch.allclose(wide[1], law.log_prob(poles), rtol=1e-12)
    assert same, f"{made.name}: expand changes log_prob"
    drawn = law.sample(torch.Size([5])).shape
    assert drawn == (5, 4, 3, made.dimension), f"{made.name}: sample shape {drawn}"
    cosines = torch.tensor([-0.9, 0.3, 0.9])
    single = made(concentration, made.pole.float()).log_kernel(cosines)
    double = made(concentration).log_kernel(cosines.double())
    assert single.dtype == torch.float32, f"{made.name}: float32 in, {single.dtype} out"
    assert torch.allclose(single.double(), double, rtol=1e-5, atol=1e-5), f"{made.name}: float32"


def check_samples(made: _Maker, concentration: float, draws: int) -> None:
    """Check that samples lie on the sphere and follow the density, by Kolmogorov and Smirnov."""
    law, generator = made(concentration), torch.Generator().manual_seed(0)
    points = law.sample(torch.Size([draws]), generator=generator)
    lengths = torch.linalg.vector_norm(points, dim=-1)
    assert float((lengths - 1).abs().max()) < 1e-9, f"{made.name}: samples lie off the sphere"
    s, mass = made.masses(concentration)
    below = torch.cumsum(mass, 0) - mass / 2
    cosines = points[:, 0].clamp(-1 + 1e-15, 1 - 1e-15).sort().values
    drawn = torch.atanh(cosines)
    place = torch.searchsorted(s, drawn).clamp(1, len(s) - 1)
    part = (drawn - s[place - 1]) / (s[place] - s[place - 1])
    share = torch.lerp(below[place - 1], below[place], part)
    rank = (torch.arange(draws, dtype=torch.float64) + 0.5) / draws
    statistic = float((share - rank).abs().max()) * math.sqrt(draws)
    assert statistic < 2.2, (
        f"{made.name}, concentration {concentration}: samples do not follow the density, "
        f"Kolmogorov-Smirnov statistic {statistic:.2f} (2.2 is one in ten thousand)"
    )
    mean = float((mass * torch.tanh(s)).sum())
    stated = float(law.mean_resultant_length)
    assert abs(stated - mean) < 1e-8, f"{made.name}: mean_resultant_length {stated}, not {mean}"
    error = 5 * float(cosines.std()) / math.sqrt(draws)
    assert abs(float(cosines.mean()) - stated) < error, f"{made.name}: the mean of the samples"


def check_kernel(made: _Maker, concentration: float) -> None:
    """Check that the fast kernel agrees with the law itself."""
    cosines = torch.linspace(-0.99, 1, 41, dtype=torch.float64)
    fast = fast_log_kernel(made.cls, concentration, made.dimension, **made.shape)
    slow = made(concentration).log_kernel(cosines)
    assert torch.allclose(fast(cosines), slow, rtol=1e-10, atol=1e-10), f"{made.name}: kernel"
    single = fast(cosines.float()).double()
    slow = made(concentration).log_kernel(cosines.float().double())
    assert torch.allclose(single, slow, rtol=1e-5, atol=1e-5), f"{made.name}: kernel in float32"


def check_gradients(made: _Maker) -> None:
    """Check derivatives of first and second order, and torch.func.vmap."""

    def log_prob(point: Tensor, pole: Tensor, concentration: Tensor) -> Tensor:
        law = made(concentration, normalize(pole, dim=-1), validate_args=False)
        return law.log_prob(normalize(point, dim=-1))

    points = made.points(4)
    given = (points[:2], points[2:], torch.tensor([0.5, 4.0], dtype=torch.float64))
    inputs = tuple(x.clone().requires_grad_() for x in given)
    assert torch.autograd.gradcheck(log_prob, inputs), f"{made.name}: first derivatives"
    assert torch.autograd.gradgradcheck(log_prob, inputs), f"{made.name}: second derivatives"
    mapped = torch.func.vmap(log_prob)(*given)
    assert torch.allclose(mapped, log_prob(*given)), f"{made.name}: torch.func.vmap"


def check_refusals(made: _Maker) -> None:
    """Check that bad input raises ValueError, unless validate_args is False."""
    bad = {
        "a mean direction that is not of unit length": partial(made, 1.0, 2 * made.pole),
        "a negative concentration": partial(made, -1.0),
        "an infinite concentration": partial(made, math.inf),
    }
    for what, make in bad.items():
        assert _is_refused(make, validate_args=True), f"{made.name} accepts {what}"
        assert not _is_refused(make, validate_args=False), f"{made.name} checks {what} regardless"
    log_prob = made(1.0, validate_args=True).log_prob
    assert _is_refused(log_prob, 2 * made.pole), f"{made.name} accepts a point off the sphere"


def _is_refused(function: Callable[..., object], *args: Any, **given: bool) -> bool:
    try:
        function(*args, **given)
    except ValueError:
        return True
    return False
