"""Candidate: a trial on its way through the seeds, told to the study as it goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from sterad.experiments.config import RunConfig
from sterad.experiments.launchers import Outcome
from sterad.experiments.run import DIVERGED
from sterad.experiments.search.owner import alive
from sterad.results.record import RunRecord


@dataclass
class Candidate:
    """What has come of a trial so far; its values are accuracies at moments of each seed."""

    trial: Trial
    configs: tuple[RunConfig, ...]
    """A run for each seed."""
    finals: list[float] = field(default_factory=list)
    """Final average accuracies of the seeds that have ended."""
    told: set[int] = field(default_factory=set)
    """Steps at which the study knows a value."""
    state: TrialState = TrialState.RUNNING
    error: str | None = None

    def heard(self, event: Mapping[str, Any]) -> bool:
        """Take an event of the run under way; return whether it is better stopped."""
        if event["event"] != "evaluation" or not event["anytime"]:
            return False
        moment = self._moment(event["samples"], event["total_samples"])
        self._report(event["accuracy"], moment)
        alive(self.trial)
        return self._pruned()

    def ended(self, outcome: Outcome) -> None:
        """Take the end of the run under way."""
        if self.state is not TrialState.RUNNING:
            return
        if outcome.record is None:
            diverged = DIVERGED in (outcome.error or "")
            # TPE learns from what it knows to be bad, and nothing from what failed.
            self.state = TrialState.PRUNED if diverged else TrialState.FAIL
            self.error = outcome.error
            return
        self._catch_up(outcome.record)
        self.finals.append(outcome.record.final_average_accuracy)
        self._report(self.mean, self._last())
        if len(self.finals) == len(self.configs):
            self.state = TrialState.COMPLETE
        else:
            self._pruned()

    @property
    def mean(self) -> float:
        """Mean over the seeds that have ended: what is searched for."""
        return sum(self.finals) / len(self.finals)

    def tell(self, study: Study) -> FrozenTrial:
        """Close the trial."""
        self.trial.set_user_attr("finals", self.finals)
        if self.error is not None:
            self.trial.set_user_attr("error", self.error)
        value = self.mean if self.state is TrialState.COMPLETE else None
        return study.tell(self.trial, value, self.state)

    def _pruned(self) -> bool:
        if self.state is TrialState.RUNNING and self.trial.should_prune():
            self.state = TrialState.PRUNED
        return self.state is TrialState.PRUNED

    def _catch_up(self, record: RunRecord) -> None:
        """Report the moments that an earlier process has seen, so that others are held to them."""
        for moment in record.moments:
            if moment.anytime:
                self._report(moment.accuracy, self._moment(moment.samples, record.stream.samples))

    def _report(self, value: float, step: int) -> None:
        if step not in self.told:
            self.told.add(step)
            self.trial.report(value, step)

    def _moment(self, samples: int, total: int) -> int:
        """Return the step of a moment: seeds have as many steps as moments, and one for the end."""
        anytime = self.configs[0].settings.anytime
        return len(self.finals) * (anytime + 1) + samples * anytime // total

    def _last(self) -> int:
        return len(self.finals) * (self.configs[0].settings.anytime + 1)
