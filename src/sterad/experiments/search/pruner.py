"""BelowMedian: a trial is stopped at a moment where it does worse than most did."""

import copy

from optuna import Study
from optuna.pruners import MedianPruner
from optuna.trial import FrozenTrial

STARTUP = 5
"""Complete trials before any is stopped."""


class BelowMedian(MedianPruner):
    """Optuna's median rule, with a trial's last value in place of its best.

    Accuracy falls as classes come, so the best value is the first one and says nothing: a moment
    is held against the same moment of the same seed.
    """

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Say whether the last value is below the median of complete trials at the same moment."""
        if trial.last_step is None:
            return False
        last = copy.copy(trial)
        last.intermediate_values = {trial.last_step: trial.intermediate_values[trial.last_step]}
        return super().prune(study, last)
