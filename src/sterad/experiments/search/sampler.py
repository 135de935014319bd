"""Sampler and pruner of a search: which point is tried next, and which trial is stopped early."""

import copy
import random
import zlib
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.pruners import MedianPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial

from sterad.experiments.search.plan import SamplerName
from sterad.experiments.search.space import Space

MAX_TPE_PROPOSALS = 8
"""Points that TPE may propose before a random untried one is taken."""
PRUNER_STARTUP_TRIALS = 5
"""Complete trials before any trial is stopped early."""


class UntriedPointSampler(BaseSampler):
    """Sample points that have not been tried, from a grid or with TPE.

    Runs are deterministic, so trying a point again would repeat its result. Random draws depend on
    the trial number alone: two processes with one study draw different points.
    """

    def __init__(
        self, space: Space, kind: SamplerName, retried: frozenset[int] = frozenset()
    ) -> None:
        """Sample from a space; the points of the `retried` trials count as untried."""
        self.space, self.kind, self.retried = space, kind, retried

    def count_untried(self, study: Study) -> float:
        """Return the number of points that have not been tried."""
        return self.space.size - len(self._tried_keys(study))

    def _tried_keys(self, study: Study) -> set[str]:
        # A trial without parameters has just been created, here or by another process.
        return {
            self.space.key(trial.params)
            for trial in study.get_trials(deepcopy=False)
            if trial.params and trial.number not in self.retried
        }

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the whole space: its fields are sampled jointly."""
        return self.space.distributions()

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return an untried point; an empty one leaves each field to `sample_independent`."""
        tried = self._tried_keys(study)
        tpe = TPESampler(seed=trial.number, multivariate=True)
        for _ in range(MAX_TPE_PROPOSALS if self.kind == "tpe" else 0):
            point = tpe.sample_relative(study, trial, search_space)
            # TPE proposes nothing before it has seen enough trials.
            if point and self.space.key(point) not in tried:
                return point
        untried = [point for key, point in self.space.points.items() if key not in tried]
        return dict(random.Random(trial.number).choice(untried)) if untried else {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Sample one field at random."""
        sampler = RandomSampler(seed=zlib.crc32(f"{trial.number} {param_name}".encode()))
        return sampler.sample_independent(study, trial, param_name, param_distribution)


class LastValueMedianPruner(MedianPruner):
    """Optuna's median rule, applied to the last value of a trial instead of its best.

    Accuracy falls as classes are added, so the best value is usually the first one. The last value
    is compared with the values of other trials at the same evaluation of the same seed.
    """

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether the last value is below the median of complete trials at its step."""
        if trial.last_step is None:
            return False
        last = copy.copy(trial)
        last.intermediate_values = {trial.last_step: trial.intermediate_values[trial.last_step]}
        return super().prune(study, last)
