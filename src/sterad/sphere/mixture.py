"""SphericalMixture: mixtures of laws on the sphere, as a scikit-learn estimator.

scikit-learn is not imported: its conventions for estimators are implemented here.
"""

import math
import numbers
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily

from sterad.errors import SteradError, not_fitted
from sterad.registry import canonical_name
from sterad.sphere.angular_central_gaussian import AngularCentralGaussian
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.elliptically_symmetric_angular_gaussian import (
    EllipticallySymmetricAngularGaussian,
)
from sterad.sphere.estimator_conventions import (
    EstimatorParameters,
    check_names,
    column_names,
    torch_generator,
)
from sterad.sphere.general_angular_gaussian import GeneralAngularGaussian
from sterad.sphere.law import LAWS
from sterad.sphere.mixture_em import (
    Components,
    EmptyComponentError,
    EMResult,
    Settings,
    chunk_width,
    run_em,
    select_component,
)
from sterad.sphere.quadrature import log_area
from sterad.sphere.rows import Rows, read_rows, warn_of_zero_rows
from sterad.sphere.watson import Watson

Array = npt.NDArray[Any]
ASSIGNMENTS = ("soft", "hard")
OTHER_LAWS: dict[str, type[SphereDistribution]] = {
    "angular-central-gaussian": AngularCentralGaussian,
    "elliptically-symmetric-angular-gaussian": EllipticallySymmetricAngularGaussian,
    "general-angular-gaussian": GeneralAngularGaussian,
    "watson": Watson,
}
"""Names of the laws that are not in `LAWS`, which has those whose density grows with the cosine."""


class SphericalMixture(EstimatorParameters):
    """A mixture of laws on the unit sphere, fitted by expectation-maximization.

    n_components: the number of laws. law: a registered name, or a class with `fit_batch`.
    law_options: parameters that are not fitted, for example {"df": 5.0}. assignment: "soft"
    maximizes the likelihood; "hard" assigns each row to one component, which is faster and better
    where a component means a cluster. n_init: runs from different starts, of which the best is
    kept. A run ends when the mean log-likelihood rises by less than `tol`, or after `max_iter`
    steps. normalize: whether rows are divided by their lengths; if not, rows that are not of unit
    length are refused. Rows of zeros have no direction: they have no influence on a fit, and their
    density is uniform. random_state: the seed, or a generator of numpy or torch.

    Memory does not grow with the number of rows for von Mises-Fisher; other laws keep
    n · n_components responsibilities in float64.

    >>> law = LAWS["von-mises-fisher"](torch.eye(3, dtype=torch.float64)[:2], 50.0)
    >>> X = law.sample(torch.Size([100]), generator=torch.Generator().manual_seed(0)).reshape(-1, 3)
    >>> mixture = SphericalMixture(2, random_state=0).fit(X)
    >>> mixture.weights_.round(3).tolist(), len(set(mixture.predict(X[::2])))
    ([0.5, 0.5], 1)
    """

    _estimator_type = "density_estimator"
    weights_: Array
    """The weights of the components: (n_components,)."""
    law_: SphereDistribution
    """The fitted laws, with batch shape (n_components,)."""
    mean_directions_: Array
    """Their mean directions, (n_components, d), if the law has one."""
    concentrations_: Array
    """Their concentrations, (n_components,), if the law has one."""
    feature_names_in_: Array
    """The names of the columns, if the rows of the fit had names."""

    def __init__(
        self,
        n_components: int = 1,
        law: str | type[SphereDistribution] = "von-mises-fisher",
        *,
        law_options: dict[str, float] | None = None,
        assignment: str = "soft",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        normalize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.law = law
        self.law_options = law_options
        self.assignment = assignment
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture to the rows of X and return the estimator.

        X: (n, d) array, tensor or data frame; y is not used; sample_weight: (n,), a weight of 2 is
        a row given twice.
        """
        settings = self._settings()
        rows = read_rows(X, sample_weight, self.normalize)
        present = int((rows.weights > 0).sum())
        if present < self.n_components:
            raise SteradError(
                f"there are n_samples = {present} rows with a positive weight and n_components is "
                f"{self.n_components}: give at least as many rows as components"
            )
        warn_of_zero_rows(rows)
        best = self._best_run(rows, settings)
        if not best.converged:
            warnings.warn(
                f"the mixture has not converged after max_iter = {self.max_iter} steps: raise "
                "max_iter or tol",
                stacklevel=2,
            )
        self._components = best.components
        self.n_features_in_ = rows.dimension
        self._set_names(X)
        self.lower_bound_, self.n_iter_ = best.lower_bound, best.n_iter
        self.converged_ = best.converged
        self._set_attributes(best.components)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit the mixture and return the component of each row: (n,) int64."""
        return self.fit(X, y, sample_weight).predict(X)

    def predict(self, X: Any) -> Array:
        """Return the most probable component of each row: (n,) int64."""
        return self._map_rows(X, lambda log_joint: log_joint.argmax(1))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each component: (n, n_components)."""
        return self._map_rows(X, lambda log_joint: log_joint.softmax(1))

    def score_samples(self, X: Any) -> Array:
        """Return the log-density of each row with respect to area: (n,)."""
        return self._map_rows(X, lambda log_joint: log_joint.logsumexp(1))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-density of the rows."""
        weights = None if sample_weight is None else read_rows(X, sample_weight).weights.numpy()
        return float(np.average(self.score_samples(X), weights=weights))

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion on X; smaller is better."""
        return 2 * self.n_parameters_ - 2 * float(self.score_samples(X).sum())

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X; smaller is better."""
        scores = self.score_samples(X)
        return self.n_parameters_ * math.log(len(scores)) - 2 * float(scores.sum())

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw points, (n_samples, d), and return them with their components, (n_samples,)."""
        components = self._fitted()
        if not (isinstance(n_samples, int | np.integer) and n_samples >= 1):
            raise SteradError(f"n_samples is {n_samples!r}: give a whole number of at least 1")
        generator = torch_generator(self.random_state)
        weights = components.log_weights.exp()
        labels = torch.multinomial(weights, int(n_samples), replacement=True, generator=generator)
        labels = labels.sort().values
        points = torch.empty(int(n_samples), self.n_features_in_, dtype=torch.float64)
        for label, count in zip(*labels.unique(return_counts=True), strict=True):
            law = select_component(components.law, int(label))
            points[labels == label] = law.sample((int(count),), generator=generator).double()
        return points.numpy(), labels.numpy()

    @property
    def distribution_(self) -> MixtureSameFamily:
        """The fitted mixture as a distribution of torch."""
        components = self._fitted()
        weights = Categorical(logits=components.log_weights)
        return MixtureSameFamily(weights, components.law)

    def _settings(self) -> Settings:
        """Check the parameters."""
        for name, least in (("n_components", 1), ("n_init", 1), ("max_iter", 1)):
            value = getattr(self, name)
            if not (isinstance(value, int | np.integer) and value >= least):
                raise SteradError(f"{name} is {value!r}: give a whole number of at least {least}")
        if not (isinstance(self.tol, numbers.Real) and 0 <= self.tol < math.inf):
            raise SteradError(f"tol is {self.tol!r}: give a finite number of at least 0")
        if self.assignment not in ASSIGNMENTS:
            raise SteradError(f"assignment is {self.assignment!r}: give {' or '.join(ASSIGNMENTS)}")
        return Settings(
            law=resolve_law(self.law),
            law_options=dict(self.law_options or {}),
            n_components=int(self.n_components),
            is_hard=self.assignment == "hard",
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )

    def _best_run(self, rows: Rows, settings: Settings) -> EMResult:
        generator = torch_generator(self.random_state)
        best, failure = None, None
        for _ in range(self.n_init):
            try:
                found = run_em(rows, settings, generator)
            except EmptyComponentError as error:
                failure = error
                continue
            if best is None or found.lower_bound > best.lower_bound:
                best = found
        if best is None:
            assert failure is not None
            raise failure
        return best

    def _set_attributes(self, components: Components) -> None:
        k = len(components.log_weights)
        self.weights_ = components.log_weights.exp().numpy()
        self.law_ = components.law
        self.n_parameters_ = k * components.n_parameters + k - 1
        for name, source in (
            ("mean_directions_", "mean_direction"),
            ("concentrations_", "concentration"),
        ):
            value: Tensor | None = getattr(components.law, source, None)
            if value is None:
                vars(self).pop(name, None)
            else:
                setattr(self, name, value.double().numpy())

    def _set_names(self, X: Any) -> None:
        names = column_names(X)
        if names is None:
            vars(self).pop("feature_names_in_", None)
        else:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _fitted(self) -> Components:
        if not self.__sklearn_is_fitted__():
            raise not_fitted("this SphericalMixture is not fitted yet: call fit first")
        return self._components

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_components")

    def _map_rows(self, X: Any, function: Any) -> Array:
        """Return a function of the log joint densities, (n, k), of all rows, chunk by chunk."""
        components = self._fitted()
        names = getattr(self, "feature_names_in_", None)
        check_names(column_names(X), names, type(self).__name__)
        rows = read_rows(X, None, self.normalize, self.n_features_in_)
        parts = []
        for place, points in rows.chunks(chunk_width(components)):
            log_joint = components.log_joint(points)
            # Nothing is known of a row without a direction: prior weights and a uniform density.
            unknown = components.log_weights - log_area(rows.dimension)
            log_joint[rows.lacks_direction(place)] = unknown
            parts.append(function(log_joint))
        values: Array = torch.cat(parts).numpy()
        return values

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn; only scikit-learn calls this."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type="density_estimator",
            target_tags=TargetTags(required=False),
            input_tags=InputTags(),
        )


def resolve_law(law: Any) -> Any:
    """Return the class of a law from its registered name or from the class itself."""
    if isinstance(law, str) and canonical_name(law) in OTHER_LAWS:
        return OTHER_LAWS[canonical_name(law)]
    if isinstance(law, str):
        return LAWS[law]
    if isinstance(law, type) and issubclass(law, SphereDistribution):
        return law
    raise SteradError(
        f"law is {law!r}: give a registered name, one of {', '.join([*LAWS, *OTHER_LAWS])}, or a "
        "class of laws"
    )
