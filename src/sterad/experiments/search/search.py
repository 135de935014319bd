"""Search: sample points, run their seeds through a launcher, report the results to Optuna."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import optuna
from optuna import Study
from optuna.pruners import NopPruner
from optuna.trial import FrozenTrial, Trial, TrialState

from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.launchers import Job, Launcher, Outcome
from sterad.experiments.run import DIVERGED
from sterad.experiments.search.equal_pixels import RejectedError
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.sampler import (
    PRUNER_STARTUP_TRIALS,
    LastValueMedianPruner,
    UntriedPointSampler,
)
from sterad.experiments.search.storage import (
    check_trials,
    hide_password,
    open_storage,
    requeue_abandoned_trials,
    set_owner,
    storage_errors,
)
from sterad.results.record import RunRecord

MAX_REJECTIONS = 200
"""Proposals that are rejected in a row before a search gives up."""
REJECTED = "rejected"
"""Attribute of a trial that was not trained: the reason."""


class SearchCallback(Protocol):
    """Receives the progress of a search, for example to display it."""

    def on_event(self, run: str, event: Mapping[str, Any]) -> None:
        """Handle an event of a run."""

    def on_run_end(self, run: str) -> None:
        """Handle the end of a run."""

    def on_trial_end(self, trial: FrozenTrial) -> None:
        """Handle the end of a trial."""


@dataclass(frozen=True)
class Search:
    """A plan and the Optuna study that stores its trials: `open` it, then `run` it."""

    plan: SearchPlan
    study: Study
    sampler: UntriedPointSampler
    storage: str

    @classmethod
    def open(cls, plan: SearchPlan, storage: str) -> "Search":
        """Load or create the study of a plan; requeue the trials of killed processes."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        # The first evaluations cover few classes and predict little.
        warmup = plan.config.settings.anytime // 3
        pruner = LastValueMedianPruner(PRUNER_STARTUP_TRIALS, warmup) if plan.prune else NopPruner()
        with storage_errors(storage):
            study = optuna.create_study(
                storage=open_storage(storage),
                study_name=plan.name,
                direction="maximize",
                pruner=pruner,
                load_if_exists=True,
            )
            check_trials(study, plan.space)
            requeue_abandoned_trials(study)
            # Trials that failed before this call are tried again, those that fail in it are not.
            failed = study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
            retried = frozenset(trial.number for trial in failed)
            study.sampler = sampler = UntriedPointSampler(plan.space, plan.sampler, retried)
        return cls(plan, study, sampler, storage)

    @property
    def storage_name(self) -> str:
        """Return the file or URL of the storage, without a password."""
        return hide_password(self.storage)

    def trials(self) -> list[FrozenTrial]:
        """Return all trials but rejected ones and those that failed before this call."""
        with storage_errors(self.storage):
            trials = self.study.get_trials(deepcopy=False)
        retried = self.sampler.retried
        return [t for t in trials if t.number not in retried and REJECTED not in t.user_attrs]

    def ranked_trials(self) -> list[FrozenTrial]:
        """Return the complete trials, best first."""
        complete = [trial for trial in self.trials() if trial.state is TrialState.COMPLETE]
        return sorted(complete, key=lambda trial: -(trial.value or 0.0))

    def best_trial(self) -> FrozenTrial:
        """Return the best complete trial."""
        if ranked := self.ranked_trials():
            return ranked[0]
        errors = [trial.user_attrs.get("error") for trial in self.trials()]
        reason = next(filter(None, errors), "others may still run")
        raise SteradError(
            f"no trial of the search {self.plan.name} is complete ({reason}): fix that and run the "
            "same command again"
        )

    def count_ended(self) -> tuple[int, int]:
        """Return the numbers of complete trials and of trials that were stopped early."""
        states = [trial.state for trial in self.trials()]
        return states.count(TrialState.COMPLETE), states.count(TrialState.PRUNED)

    def count_missing(self) -> int:
        """Return the number of trials that are still to be started."""
        trials = self.trials()
        queued = sum(trial.state is TrialState.WAITING for trial in trials)
        return max(0, self.plan.trials - len(trials)) + queued

    def run(
        self,
        launcher: Launcher,
        batch_size: int,
        create_job: Callable[[RunConfig], Job],
        callback: SearchCallback,
    ) -> None:
        """Run the missing trials in batches, so that later batches use the earlier results."""
        while batch := self._next_batch(batch_size, callback):
            for _ in self.plan.seeds:
                self._run_next_seed(batch, launcher, create_job, callback)

    def _next_batch(self, batch_size: int, callback: SearchCallback) -> list["RunningTrial"]:
        """Create trials that have not been started, up to a number."""
        batch: list[RunningTrial] = []
        rejected = 0
        with storage_errors(self.storage):
            while len(batch) < batch_size and self.count_missing():
                queued = any(trial.state is TrialState.WAITING for trial in self.trials())
                if not queued and self.sampler.count_untried(self.study) <= 0:
                    break
                trial = self.study.ask(self.plan.space.distributions())
                set_owner(trial)
                try:
                    configs = self.plan.configs(trial.params)
                except RejectedError as error:
                    rejected += 1
                    self._reject(trial, error, rejected, callback)
                    continue
                running, rejected = RunningTrial(trial, configs), 0
                if any(running.configs == other.configs for other in batch):
                    # Two killed processes had the same point, and it was requeued twice.
                    self.study.tell(trial, state=TrialState.FAIL)
                else:
                    batch.append(running)
        return batch

    def _reject(
        self, trial: Trial, reason: RejectedError, count: int, callback: SearchCallback
    ) -> None:
        """End a trial whose point is not trained; it does not count as one of the plan."""
        trial.set_user_attr(REJECTED, str(reason))
        callback.on_trial_end(self.study.tell(trial, state=TrialState.PRUNED))
        if count == MAX_REJECTIONS:
            raise SteradError(
                f"{count} points in a row were rejected before training, the last one because "
                f"{reason}: give other --pixels, or another --space"
            )

    def _run_next_seed(
        self,
        batch: Sequence["RunningTrial"],
        launcher: Launcher,
        create_job: Callable[[RunConfig], Job],
        callback: SearchCallback,
    ) -> None:
        """Run the next seed of every trial of a batch that has not ended."""
        running = {t.next_config.id: t for t in batch if t.state is TrialState.RUNNING}
        if not running:
            return

        def on_event(run: str, event: Mapping[str, Any]) -> bool:
            callback.on_event(run, event)
            with storage_errors(self.storage):
                return running[run].on_event(event)

        jobs = [create_job(trial.next_config) for trial in running.values()]
        for outcome in launcher.launch(jobs, on_event):
            callback.on_run_end(outcome.job.id)
            with storage_errors(self.storage):
                ended = running[outcome.job.id].on_run_end(outcome, self.study)
            if ended is not None:
                callback.on_trial_end(ended)


@dataclass
class RunningTrial:
    """A trial whose seeds run one after the other; accuracies are reported as they arrive.

    Optuna's steps enumerate, for each seed, its evaluations and then its final accuracy.
    """

    trial: Trial
    configs: tuple[RunConfig, ...]
    """One run per seed."""
    finals: list[float] = field(default_factory=list)
    """Final average accuracies of the finished seeds."""
    reported: set[int] = field(default_factory=set)
    """Steps whose values are in the study."""
    state: TrialState = TrialState.RUNNING

    @property
    def next_config(self) -> RunConfig:
        """Return the run of the first seed that is not finished."""
        return self.configs[len(self.finals)]

    @property
    def mean(self) -> float:
        """Mean over the finished seeds: the objective."""
        return sum(self.finals) / len(self.finals)

    def on_event(self, event: Mapping[str, Any]) -> bool:
        """Report the accuracy of an evaluation; return whether to stop the run."""
        if event["event"] != "evaluation" or not event["anytime"]:
            return False
        self._report(event["accuracy"], self._step(event["samples"], event["total_samples"]))
        set_owner(self.trial)
        return self._is_pruned()

    def on_run_end(self, outcome: Outcome, study: Study) -> FrozenTrial | None:
        """Report the final accuracy of a seed; return the trial if it has ended."""
        if self.state is TrialState.RUNNING and outcome.record is not None:
            self._report_record(outcome.record)
        elif self.state is TrialState.RUNNING:
            # TPE learns from pruned trials and ignores failed ones.
            diverged = DIVERGED in (outcome.error or "")
            self.state = TrialState.PRUNED if diverged else TrialState.FAIL
            self.trial.set_user_attr("error", outcome.error)
        if self.state is TrialState.RUNNING:
            return None
        self.trial.set_user_attr("finals", self.finals)
        value = self.mean if self.state is TrialState.COMPLETE else None
        return study.tell(self.trial, value, self.state)

    def _is_pruned(self) -> bool:
        if self.state is TrialState.RUNNING and self.trial.should_prune():
            self.state = TrialState.PRUNED
        return self.state is TrialState.PRUNED

    def _report_record(self, record: RunRecord) -> None:
        """Report a finished seed, also the evaluations that an earlier process did not report."""
        for moment in record.moments:
            if moment.anytime:
                self._report(moment.accuracy, self._step(moment.samples, record.stream.samples))
        self.finals.append(record.final_average_accuracy)
        self._report(self.mean, len(self.finals) * self._steps_per_seed)
        if len(self.finals) == len(self.configs):
            self.state = TrialState.COMPLETE
        else:
            self._is_pruned()

    def _report(self, value: float, step: int) -> None:
        if step not in self.reported:
            self.reported.add(step)
            self.trial.report(value, step)

    @property
    def _steps_per_seed(self) -> int:
        return self.configs[0].settings.anytime + 1

    def _step(self, samples: int, total: int) -> int:
        evaluation = samples * self.configs[0].settings.anytime // total
        return len(self.finals) * self._steps_per_seed + evaluation
