"""SphericalMixture: bad input, empty components, memory, and scikit-learn's conventions."""

import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sterad.errors import SteradError
from sterad.sphere import SphericalMixture, Uniform, VonMisesFisher, log_area
from sterad.sphere.mixture_em import Components, EmptyComponentError, Settings, reseed
from sterad.sphere.rows import read_rows
from tests.sphere.test_mixture import known_mixture

X, LABELS = known_mixture()
PASSED = ("passed", "skipped")


@pytest.mark.parametrize(
    "mixture",
    [
        SphericalMixture(),
        SphericalMixture(2, max_iter=20),
        SphericalMixture(2, assignment="hard"),
    ],
    ids=["one", "soft", "hard"],
)
def test_the_checks_of_scikit_learn_pass(mixture: SphericalMixture) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks without pandas are skipped with a warning
        results = check_estimator(mixture, on_fail=None)
    assert [one["check_name"] for one in results if one["status"] not in PASSED] == []
    assert sum(one["status"] == "passed" for one in results) >= 45


def test_parameters_clone_repr_and_pickle() -> None:
    mixture = SphericalMixture(3, n_init=2, random_state=1)
    assert repr(mixture) == "SphericalMixture(n_components=3, n_init=2, random_state=1)"
    assert clone(mixture).get_params() == mixture.get_params()
    with pytest.raises(SteradError, match="no parameter 'n_inits': did you mean 'n_init'"):
        mixture.set_params(n_inits=3)
    copied = pickle.loads(pickle.dumps(mixture.set_params(n_init=1).fit(X)))
    assert (copied.predict_proba(X) == mixture.predict_proba(X)).all()
    with pytest.raises(NotFittedError, match="not fitted yet: call fit first"):
        clone(mixture).predict(X)


def test_in_a_pipeline_and_a_search() -> None:
    pipeline = make_pipeline(StandardScaler(), SphericalMixture(random_state=0))
    grid = {"sphericalmixture__n_components": [1, 3]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X)
    assert search.best_params_ == {"sphericalmixture__n_components": 3}


def test_equal_seeds_give_equal_fits() -> None:
    first, second = (SphericalMixture(3, random_state=4).fit(X) for _ in range(2))
    assert (first.mean_directions_ == second.mean_directions_).all()
    generators: list[Any] = [np.random.RandomState(0), np.random.default_rng(0), torch.Generator()]
    for random_state in generators:
        assert SphericalMixture(3, random_state=random_state).fit(X).converged_


class NamedColumns:
    """The parts of a data frame that an estimator reads."""

    def __init__(self, values: Any, columns: list[Any]) -> None:
        self.values, self.columns = values, columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype)


def test_names_of_columns_are_checked() -> None:
    names = list("abcde")
    mixture = SphericalMixture(3, random_state=0).fit(NamedColumns(X, names))
    assert mixture.feature_names_in_.tolist() == names
    assert (
        mixture.predict(NamedColumns(X, names)) == mixture.predict(NamedColumns(X, names))
    ).all()
    with pytest.raises(SteradError, match="must be in the same order"):
        mixture.predict(NamedColumns(X, names[::-1]))
    with pytest.raises(SteradError, match=r"unseen at fit time:\n- z"):
        mixture.predict(NamedColumns(X, [*names[:4], "z"]))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        mixture.predict(X)
    with pytest.raises(TypeError, match="all input features have string names"):
        mixture.fit(NamedColumns(X, ["a", "b", "c", "d", 5]))


def changed(row: int, value: float) -> Any:
    rows = X.copy()
    rows[row] = value
    return rows


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SphericalMixture(0).fit(X), "n_components is 0: give a whole number"),
        (lambda: SphericalMixture(2.5).fit(X), "n_components is 2.5"),  # type: ignore[arg-type]
        (lambda: SphericalMixture(tol=-1.0).fit(X), "tol is -1.0: give a finite number"),
        (lambda: SphericalMixture(assignment="fuzzy").fit(X), "'fuzzy': give soft or hard"),
        (lambda: SphericalMixture(law="vnf").fit(X), "unknown law 'vnf': did you mean 'vmf'"),
        (lambda: SphericalMixture(law=3).fit(X), "law is 3: give a registered name"),  # type: ignore[arg-type]
        (lambda: SphericalMixture(random_state="a").fit(X), "random_state is 'a'"),
        (lambda: SphericalMixture().fit(changed(7, np.nan)), "row 7 of X contains NaN"),
        (lambda: SphericalMixture().fit(0 * X), "n_samples = 0 rows with a positive weight"),
        (lambda: SphericalMixture(normalize=False).fit(2 * X), "has length 2, but must lie on"),
        (lambda: SphericalMixture().fit(X[0]), "Expected 2D array, got 1D"),
        (lambda: SphericalMixture().fit(X[:, :1]), "1 feature.* minimum of 2"),
        (lambda: SphericalMixture().fit(X[:0]), r"0 sample\(s\)"),
        (lambda: SphericalMixture().fit([["a", "b"]]), "X holds values of type"),
        (lambda: SphericalMixture().fit([[1.0], [1.0, 2.0]]), "rows of equal length"),
        (lambda: SphericalMixture().fit(X, sample_weight=-np.ones(len(X))), "negative, inf"),
        (lambda: SphericalMixture().fit(X, sample_weight=np.zeros(len(X))), "zero for all rows"),
        (lambda: SphericalMixture().fit(X, sample_weight=[1.0]), r"shape \(1,\) and there are"),
        (lambda: SphericalMixture(2).fit(X[:1]), "n_samples = 1 rows"),
        (
            lambda: SphericalMixture(2, random_state=0).fit(np.repeat(X[:1], 9, axis=0)),
            "only 1 different directions and n_components is 2: set n_components to 1",
        ),
        (lambda: SphericalMixture().fit(X).predict(X[:, :3]), "X has 3 features, but Spherical"),
        (lambda: SphericalMixture().fit(X).sample(0), "n_samples is 0"),
    ],
)
def test_bad_input_raises_a_sentence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("rows", [X[:1], np.repeat(X[:1], 20, axis=0)], ids=["one", "equal"])
def test_points_without_spread_give_the_largest_concentration(rows: Any) -> None:
    mixture = SphericalMixture(random_state=0).fit(rows)
    assert mixture.concentrations_[0] == pytest.approx(1e8)
    np.testing.assert_allclose(mixture.mean_directions_[0], X[0], atol=1e-12)
    assert np.isfinite(mixture.score_samples(X)).all()


@pytest.mark.parametrize(
    "law", ["von-mises-fisher", "spherical-cauchy", "angular-central-gaussian"]
)
def test_rows_of_zeros_have_no_influence(law: str) -> None:
    with pytest.warns(UserWarning, match="1 of 600 rows of X are zero and have no direction"):
        mixture = SphericalMixture(2, law, random_state=0).fit(changed(8, 0.0))
    other = SphericalMixture(2, law, random_state=0).fit(np.delete(X, 8, axis=0))
    np.testing.assert_allclose(mixture.score_samples(X), other.score_samples(X), rtol=1e-6)
    unknown = mixture.predict_proba(np.zeros((1, 5)))[0]
    np.testing.assert_allclose(unknown, mixture.weights_, rtol=1e-12)
    assert mixture.score_samples(np.zeros((1, 5)))[0] == pytest.approx(-log_area(5))


def test_the_order_of_rows_and_repeated_rows_change_nothing() -> None:
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    order = np.random.default_rng(1).permutation(len(X))
    weighted = SphericalMixture(3, random_state=0).fit(X[order], sample_weight=counts[order])
    repeated = SphericalMixture(3, random_state=0).fit(X.repeat(counts, axis=0))
    np.testing.assert_allclose(weighted.mean_directions_, repeated.mean_directions_, rtol=1e-6)


def test_antipodal_pairs_give_the_uniform_law() -> None:
    mixture = SphericalMixture(random_state=0).fit(np.concatenate([X, -X]))
    assert mixture.concentrations_[0] == pytest.approx(0, abs=1e-9)
    uniform = Uniform(5, dtype=torch.float64).log_prob(torch.from_numpy(X))
    np.testing.assert_allclose(mixture.score_samples(X), uniform, rtol=1e-12)


def test_more_components_than_clusters_give_finite_parameters() -> None:
    rows = np.repeat(X[:6], 10, axis=0)
    for assignment in ("soft", "hard"):
        mixture = SphericalMixture(6, assignment=assignment, random_state=0).fit(rows)
        assert np.isfinite(mixture.concentrations_).all()
        assert np.isfinite(mixture.weights_).all()
        assert mixture.weights_.min() > 0


def test_empty_components_are_moved_or_refused_in_words() -> None:
    rows = read_rows(X)
    settings = Settings(VonMisesFisher, {}, 3, is_hard=True, max_iter=5, tol=0.0)
    law = VonMisesFisher(torch.from_numpy(X[:3]), 50.0)
    components = Components(law, torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64).log(), 5)
    empty = torch.tensor([False, False, True])
    generator = torch.Generator().manual_seed(0)
    moved = reseed(rows, settings, components, empty, 1, generator)
    assert moved.log_weights.exp().min() > 0.03
    assert moved.log_joint(torch.from_numpy(X)).isfinite().all()
    with pytest.raises(EmptyComponentError, match="1 of 3 components have no points, also after"):
        reseed(rows, settings, components, empty, 11, generator)


def test_a_run_that_ends_early_warns() -> None:
    with pytest.warns(UserWarning, match="not converged after max_iter = 1 steps"):
        mixture = SphericalMixture(3, max_iter=1, random_state=0).fit(X)
    assert not mixture.converged_
    assert mixture.n_iter_ == 1


MEASURE = """
import re
from pathlib import Path
import numpy as np
from sterad.sphere import SphericalMixture

def peak_kb():  # not ru_maxrss: it begins with the memory of the process that starts this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

mixture = SphericalMixture(10, max_iter=2, tol=0.0, random_state=0)
generator = np.random.default_rng(0)
rows, dimension = 1_000_000, 64
x = np.empty((rows, dimension), np.float32)
for start in range(0, rows, 50_000):
    x[start : start + 50_000] = generator.normal(size=(50_000, dimension))
mixture.fit(x[:1000])
before = peak_kb()
mixture.fit(x)
labels = mixture.predict(x)
after = peak_kb()
print(before, after, len(labels))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="resident memory is read from /proc"
)
def test_a_million_rows_take_less_than_a_gigabyte() -> None:
    command = [sys.executable, "-W", "ignore", "-c", MEASURE]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    before, after, count = map(int, result.stdout.split())
    assert count == 1_000_000
    assert after < 2**20, f"{after} kB resident with the 256 MB of data"
    copy_in_float64 = 1_000_000 * 64 * 8 // 1024
    assert after - before < copy_in_float64, f"the fit took {after - before} kB"
