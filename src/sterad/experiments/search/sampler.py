"""Untried: a sampler that never proposes what has been tried, by a grid or guided by TPE.

A run is what its config says, so the same point twice would be the same result twice.
"""

import random
import zlib
from collections.abc import Iterator
from typing import Any, Literal

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from sterad.experiments.search.space import Point, Space

Kind = Literal["grid", "tpe"]
PROPOSALS = 8
"""Points that TPE may propose before a random one is taken."""


class Untried(BaseSampler):
    """Points of a space; chance depends on the number of the trial alone.

    So two processes with one study draw different points, and a second call goes on drawing.
    """

    def __init__(self, space: Space, kind: Kind, forgotten: frozenset[int] = frozenset()) -> None:
        """Take points by a grid or by TPE; those of `forgotten` trials may be tried again."""
        self.space, self.kind, self.forgotten = space, kind, forgotten

    def left(self, study: Study) -> float:
        """Count the points that have not been tried."""
        return self.space.size - len(self._tried(study))

    def _tried(self, study: Study) -> set[str]:
        trials = study.get_trials(deepcopy=False)
        # A trial without parameters has just been asked for, here or by another process.
        known = [t for t in trials if t.params and t.number not in self.forgotten]
        return {self.space.key(trial.params) for trial in known}

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the whole space: its fields are drawn together."""
        return self.space.distributions()

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return a point; nothing where chance is to draw each field of an endless space."""
        tried = self._tried(study)
        for point in self._proposals(study, trial, search_space):
            if self.space.key(point) not in tried:
                return dict(point)
        fresh = [point for key, point in self.space.points.items() if key not in tried]
        return dict(random.Random(trial.number).choice(fresh)) if fresh else {}

    def _proposals(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> Iterator[Point]:
        tpe = TPESampler(seed=trial.number, multivariate=True)
        for _ in range(PROPOSALS if self.kind == "tpe" else 0):
            # There is none while trials are few.
            if point := tpe.sample_relative(study, trial, search_space):
                yield point

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draw one field by chance."""
        seed = zlib.crc32(f"{trial.number} {param_name}".encode())
        chance = RandomSampler(seed=seed)
        return chance.sample_independent(study, trial, param_name, param_distribution)


def failed(study: Study) -> frozenset[int]:
    """Return the trials that came to nothing: their points may be tried again."""
    states = (TrialState.FAIL,)
    return frozenset(t.number for t in study.get_trials(deepcopy=False, states=states))
