"""SphericalMixture: EM against a literal transcription, torch's mixtures, and recovery."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import torch
from sklearn.metrics import adjusted_rand_score
from torch.distributions import Categorical, MixtureSameFamily
from torch.nn.functional import normalize

from sterad.sphere import (
    LAWS,
    EllipticallySymmetricAngularGaussian,
    SphericalMixture,
    VonMisesFisher,
    Watson,
)
from sterad.sphere.mixture_em import (
    Components,
    Settings,
    expectation_step,
    maximization_step,
    start,
)
from sterad.sphere.rows import read_rows

Array = np.ndarray[Any, np.dtype[Any]]


def known_mixture(
    dimension: int = 5, count: int = 3, rows: int = 600, kappa: float = 30.0, seed: int = 0
) -> tuple[Array, Array]:
    """Return rows of a von Mises-Fisher mixture, and their components."""
    generator = torch.Generator().manual_seed(seed)
    means = random_directions(count, dimension, seed + 1)
    labels = torch.randint(count, (rows,), generator=generator)
    points = VonMisesFisher(means[labels], kappa).sample(generator=generator)
    return points.numpy(), labels.numpy()


def random_directions(count: int, dimension: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, dimension, generator=generator, dtype=torch.float64)
    return normalize(noise, dim=1)


def settings_of(count: int, is_hard: bool = False) -> Settings:
    return Settings(VonMisesFisher, {}, count, is_hard, max_iter=10, tol=0.0)


def literal_step(
    x: Array, weights: Array, pi: Array, mu: Array, kappa: Array, is_hard: bool
) -> tuple[float, Array, Array, Array]:
    """Return the bound and the next parameters, row by row and from Bessel functions."""
    n, d = x.shape
    k, order = len(pi), d / 2 - 1
    shares, bound = np.zeros((n, k)), 0.0
    for i in range(n):
        joint = np.empty(k)
        for j in range(k):
            constant = kappa[j] ** order / (
                (2 * np.pi) ** (d / 2) * scipy.special.iv(order, kappa[j])
            )
            joint[j] = pi[j] * constant * np.exp(kappa[j] * float(mu[j] @ x[i]))
        if is_hard:
            shares[i, joint.argmax()] = weights[i]
            bound += weights[i] * np.log(joint.max())
        else:
            shares[i] = weights[i] * joint / joint.sum()
            bound += weights[i] * np.log(joint.sum())
    new_mu, new_kappa = np.empty_like(mu), np.empty(k)
    for j in range(k):
        resultant = sum(shares[i, j] * x[i] for i in range(n))
        new_mu[j] = resultant / np.linalg.norm(resultant)
        length = np.linalg.norm(resultant) / shares[:, j].sum()
        new_kappa[j] = scipy.optimize.brentq(
            lambda value, length=length: (
                scipy.special.ive(order + 1, value) / scipy.special.ive(order, value) - length
            ),
            1e-6,
            1e4,
            xtol=1e-12,
            rtol=1e-13,
        )
    return bound / weights.sum(), shares.sum(0) / weights.sum(), new_mu, new_kappa


@pytest.mark.parametrize("is_hard", [False, True])
@pytest.mark.parametrize("dimension", [2, 3, 8])
def test_one_step_equals_a_literal_transcription(dimension: int, is_hard: bool) -> None:
    x, _ = known_mixture(dimension, rows=150, kappa=6.0)
    weights = np.random.default_rng(0).integers(0, 4, len(x)).astype(float)
    rows, settings = read_rows(x, weights), settings_of(3, is_hard)
    before = start(rows, settings, torch.Generator().manual_seed(0))
    statistics, bound = expectation_step(rows, settings, before)
    after = maximization_step(statistics, settings)
    law: Any = before.law
    expected: tuple[Any, ...] = literal_step(
        x,
        weights,
        before.log_weights.exp().numpy(),
        law.mean_direction.numpy(),
        law.concentration.numpy(),
        is_hard,
    )
    law = after.law
    found: tuple[Any, ...] = (bound, after.log_weights.exp(), law.mean_direction, law.concentration)
    for value, literal in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, literal, rtol=1e-9, atol=1e-12)


def test_the_bound_never_falls() -> None:
    x, _ = known_mixture(8, 4, kappa=8.0)
    for is_hard in (False, True):
        rows, settings = read_rows(x), settings_of(4, is_hard)
        components = start(rows, settings, torch.Generator().manual_seed(1))
        bounds = []
        for _ in range(25):
            statistics, bound = expectation_step(rows, settings, components)
            components = maximization_step(statistics, settings)
            bounds.append(bound)
        assert (np.diff(bounds) > -1e-12).all()
        assert bounds[-1] > bounds[0] + 0.01


def test_scores_equal_torchs_mixture() -> None:
    x, _ = known_mixture()
    mixture = SphericalMixture(3, random_state=0).fit(x)
    torch_mixture = MixtureSameFamily(
        Categorical(torch.from_numpy(mixture.weights_)),
        VonMisesFisher(mixture.mean_directions_, mixture.concentrations_),
    )
    expected = torch_mixture.log_prob(torch.from_numpy(x))
    np.testing.assert_allclose(mixture.score_samples(x), expected, rtol=1e-12, atol=1e-12)
    own = mixture.distribution_.log_prob(torch.from_numpy(x))
    np.testing.assert_allclose(own, expected, rtol=1e-12, atol=1e-12)
    assert mixture.score(x) == pytest.approx(mixture.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(mixture.predict_proba(x).sum(1), 1, rtol=1e-12)
    assert (mixture.predict_proba(x).argmax(1) == mixture.predict(x)).all()


def test_one_component_equals_the_fit_of_the_law() -> None:
    x, _ = known_mixture()
    weights = np.random.default_rng(1).random(len(x))
    mixture = SphericalMixture(random_state=0, tol=0.0, max_iter=3)
    mixture.fit(x, sample_weight=weights)
    fit = VonMisesFisher.fit(torch.from_numpy(x), torch.from_numpy(weights))
    np.testing.assert_allclose(mixture.mean_directions_[0], fit.law.mean_direction, atol=1e-12)
    np.testing.assert_allclose(mixture.concentrations_, fit.law.concentration, rtol=1e-10)
    total = mixture.score(x, sample_weight=weights) * weights.sum()
    assert total == pytest.approx(float(fit.log_likelihood), rel=1e-12)
    plain = VonMisesFisher.fit(torch.from_numpy(x))
    mixture.fit(x)
    assert mixture.aic(x) == pytest.approx(float(plain.aic), rel=1e-12)
    assert mixture.bic(x) == pytest.approx(float(plain.bic), rel=1e-12)


@pytest.mark.parametrize("assignment", ["soft", "hard"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "projected-student-t" else ())
        for name in sorted(LAWS)
    ],
)
def test_every_law_finds_separated_components(name: str, assignment: str) -> None:
    generator = torch.Generator().manual_seed(3)
    axes = torch.eye(4, dtype=torch.float64)[:3]
    options = {"df": 5.0} if name == "projected-student-t" else {}
    make: Any = LAWS[name]
    law = make(axes, LAWS[name].concentration_of(0.02), **options)
    x = law.sample((100,), generator=generator).reshape(-1, 4).numpy()
    labels = np.tile(np.arange(3), 100)
    mixture = SphericalMixture(
        3, name, law_options=options, assignment=assignment, n_init=3, random_state=0
    ).fit(x)
    assert adjusted_rand_score(labels, mixture.predict(x)) > 0.9
    assert mixture.converged_
    np.testing.assert_allclose(mixture.weights_, 1 / 3, atol=0.08)
    law_found: Any = mixture.law_
    cosines = axes @ law_found.mode.double().mT
    assert float(cosines.abs().max(1).values.min()) > 0.97
    points, components = mixture.sample(500)  # the standard error of a share of 0.95 is 0.01
    assert points.shape == (500, 4)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=1e-6)
    assert (mixture.predict(points) == components).mean() > 0.9


@pytest.mark.parametrize("name", ["watson", "angular-central-gaussian"])
def test_axial_laws_find_axes(name: str) -> None:
    """U and -u belong to the same component, also in the start."""
    law = Watson(torch.eye(3, dtype=torch.float64), 40.0)
    x = law.sample((80,), generator=torch.Generator().manual_seed(5)).reshape(-1, 3).numpy()
    mixture = SphericalMixture(3, name, n_init=3, random_state=0).fit(x)
    assert adjusted_rand_score(np.tile(np.arange(3), 80), mixture.predict(x)) > 0.9
    np.testing.assert_allclose(mixture.predict_proba(x), mixture.predict_proba(-x), rtol=1e-9)
    assert hasattr(mixture, "concentrations_") == (name == "watson")
    assert mixture.sample(10)[0].shape == (10, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    ["general-angular-gaussian", EllipticallySymmetricAngularGaussian],
)
def test_laws_with_a_covariance(law: Any) -> None:
    x, labels = known_mixture(3, 2, rows=200, kappa=30.0)
    # Rows are not normalized again: with a large mean, their last bit changes the ninth digit.
    mixture = SphericalMixture(2, law, random_state=0, tol=1e-3, normalize=False).fit(x)
    assert adjusted_rand_score(labels, mixture.predict(x)) > 0.9
    scores = mixture.distribution_.log_prob(torch.from_numpy(x))
    np.testing.assert_allclose(mixture.score_samples(x), scores, rtol=1e-9)


def test_bic_finds_the_number_of_components() -> None:
    x, _ = known_mixture(6, 3, rows=900, kappa=25.0)
    values = [SphericalMixture(k, n_init=3, random_state=0).fit(x).bic(x) for k in (1, 2, 3, 4)]
    assert int(np.argmin(values)) == 2


def test_weights_count_as_repetitions() -> None:
    x, _ = known_mixture(4, 2, rows=200)
    counts = np.random.default_rng(2).integers(0, 3, len(x))
    weighted, repeated = read_rows(x, counts), read_rows(np.repeat(x, counts, axis=0))
    settings = settings_of(2)
    law = VonMisesFisher(random_directions(2, 4, 5), 3.0)
    components = Components(law, torch.full((2,), 0.5, dtype=torch.float64).log(), 4)
    (one, bound), (other, other_bound) = (
        expectation_step(rows, settings, components) for rows in (weighted, repeated)
    )
    assert bound == pytest.approx(other_bound, rel=1e-13)
    first: Any = maximization_step(one, settings).law
    second: Any = maximization_step(other, settings).law
    assert torch.allclose(first.concentration, second.concentration, rtol=1e-11)
    assert torch.allclose(first.mean_direction, second.mean_direction, rtol=1e-11)


def test_lengths_of_rows_do_not_matter() -> None:
    x, _ = known_mixture()
    lengths = np.exp(np.random.default_rng(3).normal(size=(len(x), 1)) * 5)
    plain, scaled = (SphericalMixture(3, random_state=0).fit(rows) for rows in (x, x * lengths))
    np.testing.assert_allclose(plain.concentrations_, scaled.concentrations_, rtol=1e-9)
    extreme = SphericalMixture(3, random_state=0).fit(x * 1e-200)
    np.testing.assert_allclose(plain.concentrations_, extreme.concentrations_, rtol=1e-9)


def test_float32_is_close_to_float64() -> None:
    x, _ = known_mixture(32, 5, kappa=100.0)
    double = SphericalMixture(5, random_state=0).fit(x)
    single = SphericalMixture(5, random_state=0).fit(x.astype(np.float32))
    np.testing.assert_allclose(single.concentrations_, double.concentrations_, rtol=1e-5)
    assert (single.predict(x) == double.predict(x)).all()
    as_tensor = SphericalMixture(5, random_state=0).fit(torch.from_numpy(x))
    assert (as_tensor.concentrations_ == double.concentrations_).all()
