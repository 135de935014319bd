"""A small real search, with a launcher in this process, as starting one takes seconds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from optuna.trial import FrozenTrial

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.launchers import Job, Outcome, Watch
from sterad.experiments.launchers.job import attempted, ended
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.searching import Search
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
LRS = "[finetune]\nlr = [0.0001, 0.001, 0.01, 0.1]\n"


@dataclass
class Watched:
    """A logger that ends the run when the watch says so."""

    job: Job
    watch: Watch

    def __enter__(self) -> Self:
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        if self.watch(self.job.id, event):
            raise SteradError("ended by the watch")

    def __exit__(self, *_: object) -> None: ...


@dataclass
class Here:
    """A launcher in this process; it remembers what it was given."""

    launched: list[Job] = field(default_factory=list)

    def launch(self, jobs: Sequence[Job], watch: Watch) -> Iterator[Outcome]:
        for job in jobs:
            self.launched.append(job)
            yield ended(job, attempted(job.to_json(), [Watched(job, watch)]))


class Silent:
    """Nobody looks on."""

    def heard(self, run: str, event: Mapping[str, Any]) -> None: ...
    def ended(self, run: str) -> None: ...
    def told(self, trial: FrozenTrial) -> None: ...


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., SearchPlan]:
    def make(text: str = LRS, config: dict[str, Any] | None = None, **asked: Any) -> SearchPlan:
        (tmp_path / "space.toml").write_text(text)
        made = RunConfig.of(**(SMALL | (config or {})))
        space = read_space(made.method, tmp_path / "space.toml")
        return SearchPlan.of(made, space, **({"seeds": (100, 101)} | asked))

    return make


@pytest.fixture
def searched(tmp_path: Path) -> Callable[..., tuple[Search, Here]]:
    """Open the study of a plan, run what is missing, return it and what was launched."""

    def run(plan: SearchPlan, at_once: int = 1, launcher: Any = None) -> tuple[Search, Here]:
        search = Search.open(plan, str(tmp_path / "search.journal"))
        here = launcher or Here()
        search.run(here, at_once, lambda c: Job(c, tmp_path, Execution(threads=1)), Silent())
        return search, here

    return run
