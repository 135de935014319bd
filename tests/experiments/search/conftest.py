"""A small real search with a launcher that runs jobs in this process, which is faster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import FrozenTrial

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.launchers import EventCallback, Job, Outcome
from sterad.experiments.launchers.job import read_outcome, run_job
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.search import Search
from sterad.experiments.search.space import read_space

SMALL: dict[str, Any] = {
    "method": "finetune",
    "dataset": "synthetic",
    "classes": 4,
    "per_class": 20,
    "tasks": 2,
    "memory": 0,
    "width": 2,
    "anytime": 5,
}
LEARNING_RATES = "[finetune]\nlr = [0.0001, 0.001, 0.01, 0.1]\n"


@dataclass
class InProcessLauncher:
    """A launcher that runs jobs in this process and records them."""

    launched: list[Job] = field(default_factory=list)

    def launch(self, jobs: Sequence[Job], on_event: EventCallback) -> Iterator[Outcome]:
        for job in jobs:
            self.launched.append(job)

            def stop_if_told(event: Mapping[str, Any], job: Job = job) -> None:
                if on_event(job.id, event):
                    raise SteradError("stopped by the callback")

            yield read_outcome(job, run_job(job.to_json(), stop_if_told))


class NoCallback:
    """A callback that does nothing."""

    def on_event(self, run: str, event: Mapping[str, Any]) -> None: ...
    def on_run_end(self, run: str) -> None: ...
    def on_trial_end(self, trial: FrozenTrial) -> None: ...


@pytest.fixture
def create_plan(tmp_path: Path) -> Callable[..., SearchPlan]:
    def create(
        space: str = LEARNING_RATES, config: dict[str, Any] | None = None, **options: Any
    ) -> SearchPlan:
        (tmp_path / "space.toml").write_text(space)
        run = RunConfig.of(**(SMALL | (config or {})))
        fields = read_space(run.method, tmp_path / "space.toml")
        return SearchPlan.create(run, fields, **({"seeds": (100, 101)} | options))

    return create


@pytest.fixture
def run_search(tmp_path: Path) -> Callable[..., tuple[Search, InProcessLauncher]]:
    """Open the study of a plan, run its missing trials, return the search and its launcher."""

    def run(
        plan: SearchPlan, batch_size: int = 1, launcher: Any = None
    ) -> tuple[Search, InProcessLauncher]:
        search = Search.open(plan, str(tmp_path / "search.journal"))
        launcher = launcher or InProcessLauncher()
        execution = Execution(threads=1)
        search.run(launcher, batch_size, lambda c: Job(c, tmp_path, execution), NoCallback())
        return search, launcher

    return run
