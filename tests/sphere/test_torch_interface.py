"""Every law works inside torch: mixtures, Independent, expand, vmap, compile, numpy and lists."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, Independent, MixtureSameFamily
from torch.nn.functional import normalize

from sterad.sphere import (
    AngularCentralGaussian,
    AngularGaussian,
    EllipticallySymmetricAngularGaussian,
    GeneralAngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphereDistribution,
    SphericalCauchy,
    Uniform,
    VonMisesFisher,
    Watson,
)

POLES = torch.eye(3, dtype=torch.float64)
SPREADS = torch.stack([torch.diag(torch.tensor([x, 1.0, 2.0])).double() for x in (1, 2, 3)])

# Each function makes a law with batch shape (3,) on the sphere of 3 dimensions.
LAWS: dict[str, Callable[[], SphereDistribution]] = {
    "Uniform": lambda: Uniform(3, (3,), dtype=torch.float64),
    "VonMisesFisher": lambda: VonMisesFisher(POLES, 4.0),
    "PowerSpherical": lambda: PowerSpherical(POLES, 4.0),
    "SphericalCauchy": lambda: SphericalCauchy(POLES, 4.0),
    "AngularGaussian": lambda: AngularGaussian(POLES, 4.0),
    "ProjectedStudentT": lambda: ProjectedStudentT(POLES, 4.0, 2.5),
    "Watson": lambda: Watson(POLES, -4.0),
    "AngularCentralGaussian": lambda: AngularCentralGaussian(SPREADS),
    "GeneralAngularGaussian": lambda: GeneralAngularGaussian(POLES, SPREADS),
    "EllipticallySymmetricAngularGaussian": lambda: (
        EllipticallySymmetricAngularGaussian.from_tangent(2 * POLES, SPREADS[:, 1:, 1:])
    ),
}
each_law = pytest.mark.parametrize("name", list(LAWS))


def points(count: int) -> Tensor:
    noise = torch.randn(count, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return normalize(noise, dim=1)


@each_law
def test_mixture_same_family(name: str) -> None:
    components = LAWS[name]()
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    mixture = MixtureSameFamily(Categorical(weights), components)
    x = points(5)
    expected = torch.logsumexp(components.log_prob(x.unsqueeze(1)) + weights.log(), 1)
    assert torch.allclose(mixture.log_prob(x), expected)
    torch.manual_seed(0)
    draws = mixture.sample(torch.Size([4000]))
    assert torch.allclose(draws.mean(0), mixture.mean, atol=0.05)
    assert torch.allclose(draws.var(0), mixture.variance, atol=0.05)


@each_law
def test_independent_and_expand(name: str) -> None:
    law = LAWS[name]()
    x = points(3)
    joint = Independent(law, 1)
    assert torch.allclose(joint.log_prob(x), law.log_prob(x).sum())
    wide = law.expand(torch.Size([2, 3]))
    assert wide.batch_shape == (2, 3)
    assert torch.allclose(wide.log_prob(x), law.log_prob(x).expand(2, 3))
    assert wide.sample().shape == wide.rsample().shape == (2, 3, 3)
    assert wide.mean.shape == wide.variance.shape == (2, 3, 3)


@each_law
def test_vmap(name: str) -> None:
    law = LAWS[name]()
    law._validate_args = False
    x = points(4)
    mapped = torch.func.vmap(law.log_prob)(x)
    assert torch.allclose(mapped, torch.stack([law.log_prob(row) for row in x]))


@each_law
def test_arrays_and_lists(name: str) -> None:
    law = LAWS[name]()
    x = points(3)
    array: Any = x.numpy()
    rows: Any = np.eye(3).tolist()
    assert torch.equal(law.log_prob(array), law.log_prob(x))
    assert torch.allclose(law.log_prob(rows).double(), law.log_prob(POLES), atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda array: VonMisesFisher(array[0], 2),
        lambda array: Watson(array, [1.0, -2.0, 0.0]),
        lambda array: ProjectedStudentT(array, np.ones(3), 2),
        lambda array: AngularCentralGaussian(array),
        lambda array: EllipticallySymmetricAngularGaussian.from_tangent([2.0, 0, 0], np.eye(2)),
    ],
)
def test_parameters_may_be_arrays_and_lists(make: Callable[[Any], Distribution]) -> None:
    for array in (np.eye(3), np.eye(3).tolist()):
        assert make(array).sample().isfinite().all()


@each_law
def test_mode_is_the_most_likely_of_many_points(name: str) -> None:
    law = LAWS[name]()
    if name == "Uniform":
        with pytest.raises(NotImplementedError, match="every direction is a mode"):
            assert law.mode is None
        return
    best = law.log_prob(points(2000).unsqueeze(1)).amax(0)
    assert bool((law.log_prob(law.mode) > best - 1e-9).all())


@pytest.mark.slow
@pytest.mark.usefixtures("_compiler")
@each_law
def test_compile(name: str) -> None:
    law = LAWS[name]()
    law._validate_args = False
    x = points(4).unsqueeze(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about internals of torch
        compiled = torch.compile(lambda value: law.log_prob(value))(x)
    assert torch.allclose(compiled, law.log_prob(x), rtol=1e-10)
