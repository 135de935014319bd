"""search: ask for points, run their seeds through a launcher, tell what came of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import optuna
from optuna import Study
from optuna.pruners import BasePruner, NopPruner
from optuna.trial import FrozenTrial, TrialState

from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.launchers import Job, Launcher
from sterad.experiments.search.candidate import Candidate
from sterad.experiments.search.owner import alive, take_up
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.pruner import STARTUP, BelowMedian
from sterad.experiments.search.sampler import Untried, failed
from sterad.experiments.search.storage import open_storage, plainly, without_password


class Onlooker(Protocol):
    """Whoever looks on: a view on a terminal, say."""

    def heard(self, run: str, event: Mapping[str, Any]) -> None:
        """Take an event of a run."""

    def ended(self, run: str) -> None:
        """Take the end of a run."""

    def told(self, trial: FrozenTrial) -> None:
        """Take a trial that has ended."""


@dataclass(frozen=True)
class Search:
    """A plan and the study that keeps what came of it; `open` and then `run`."""

    plan: SearchPlan
    study: Study
    sampler: Untried
    storage: str

    @classmethod
    def open(cls, plan: SearchPlan, storage: str) -> "Search":
        """Find the study of a plan or make it; take up what a killed process left."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with plainly(storage):
            study = optuna.create_study(
                storage=open_storage(storage),
                study_name=plan.name,
                direction="maximize",
                pruner=_pruner(plan),
                load_if_exists=True,
            )
            take_up(study)
            # Only what fails in this call counts as tried, so that the next one tries it again.
            study.sampler = sampler = Untried(plan.space, plan.sampler, failed(study))
        return cls(plan, study, sampler, storage)

    @property
    def place(self) -> str:
        """Where the study is kept, without a password."""
        return without_password(self.storage)

    def trials(self) -> list[FrozenTrial]:
        """Return the trials that count: all but those that failed before this call."""
        every = self.study.get_trials(deepcopy=False)
        return [trial for trial in every if trial.number not in self.sampler.forgotten]

    def ranked(self) -> list[FrozenTrial]:
        """Return the complete trials, the best first."""
        complete = [one for one in self.trials() if one.state is TrialState.COMPLETE]
        return sorted(complete, key=lambda trial: -(trial.value or 0.0))

    def best(self) -> FrozenTrial:
        """Return the best complete trial."""
        if ranked := self.ranked():
            return ranked[0]
        told = [trial.user_attrs.get("error") for trial in self.trials()]
        reason = next(filter(None, told), "others may still run")
        raise SteradError(
            f"no trial of the search {self.plan.name} has ended ({reason}): mend that and run the "
            "same command again"
        )

    def counted(self) -> dict[str, int]:
        """Count the trials that ran to their end and those that were stopped early."""
        states = [trial.state for trial in self.trials()]
        return {
            "complete": states.count(TrialState.COMPLETE),
            "stopped": states.count(TrialState.PRUNED),
        }

    def missing(self) -> int:
        """Count the trials that this call has to run: what nobody has begun."""
        waiting = sum(trial.state is TrialState.WAITING for trial in self.trials())
        return max(0, self.plan.trials - len(self.trials())) + waiting

    def run(
        self, launcher: Launcher, at_once: int, job: Callable[[RunConfig], Job], view: Onlooker
    ) -> None:
        """Run what is missing, `at_once` trials at a time, so that later ones know earlier ones."""
        with plainly(self.storage):
            while batch := self._ask(at_once):
                for _ in self.plan.seeds:
                    self._run_seed(batch, launcher, job, view)

    def _ask(self, at_once: int) -> list[Candidate]:
        batch: list[Candidate] = []
        while len(batch) < at_once and self.missing():
            waiting = any(trial.state is TrialState.WAITING for trial in self.trials())
            if not waiting and self.sampler.left(self.study) <= 0:
                break
            trial = self.study.ask(self.plan.space.distributions())
            alive(trial)
            candidate = Candidate(trial, self.plan.configs(trial.params))
            if any(candidate.configs == one.configs for one in batch):
                self.study.tell(trial, state=TrialState.FAIL)  # two killed processes had it
            else:
                batch.append(candidate)
        return batch

    def _run_seed(
        self,
        batch: Sequence[Candidate],
        launcher: Launcher,
        job: Callable[[RunConfig], Job],
        view: Onlooker,
    ) -> None:
        """Run the next seed of those that are still promising."""
        runs = {
            one.configs[len(one.finals)].id: one for one in batch if one.state is TrialState.RUNNING
        }

        def watch(run: str, event: Mapping[str, Any]) -> bool:
            view.heard(run, event)
            return runs[run].heard(event)

        jobs = [job(one.configs[len(one.finals)]) for one in runs.values()]
        for outcome in launcher.launch(jobs, watch):
            view.ended(outcome.job.id)
            candidate = runs[outcome.job.id]
            candidate.ended(outcome)
            if candidate.state is not TrialState.RUNNING:
                view.told(candidate.tell(self.study))


def _pruner(plan: SearchPlan) -> BasePruner:
    if not plan.prune:
        return NopPruner()
    # The first moments know few classes and say little.
    return BelowMedian(STARTUP, n_warmup_steps=plan.config.settings.anytime // 3)
