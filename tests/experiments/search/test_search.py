import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from sterad.errors import SteradError
from sterad.experiments.launchers import EventCallback, Job, Outcome
from sterad.experiments.launchers.job import read_outcome, run_job
from sterad.experiments.search import search as search_module
from sterad.experiments.search import storage
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.search import Search
from sterad.results.run_directory import RunDirectory

CreatePlan = Callable[..., SearchPlan]
RunSearch = Callable[..., tuple[Search, Any]]


@pytest.mark.parametrize("sampler", ["grid", "tpe"])
def test_the_value_of_a_trial_is_the_mean_over_its_seeds(
    create_plan: CreatePlan, run_search: RunSearch, tmp_path: Path, sampler: str
) -> None:
    search, launcher = run_search(create_plan(sampler=sampler, prune=False), batch_size=2)
    assert sorted(t.params["lr"] for t in search.ranked_trials()) == [0.0001, 0.001, 0.01, 0.1]
    assert len(launcher.launched) == 8
    for trial in search.ranked_trials():
        configs = search.plan.configs(trial.params)
        records = [RunDirectory(tmp_path, config.id).read_record() for config in configs]
        finals = [record.final_average_accuracy for record in records if record]
        assert trial.user_attrs["finals"] == finals
        assert trial.value == sum(finals) / 2
        steps = sorted(trial.intermediate_values)
        assert steps == list(range(1, 13)), "5 evaluations and the end of each of 2 seeds"
        assert trial.intermediate_values[6] == finals[0]
    assert search.best_trial().value == max(trial.value or 0 for trial in search.trials())
    assert search.count_missing() == 0


def test_a_second_call_runs_missing_trials_only(
    create_plan: CreatePlan, run_search: RunSearch
) -> None:
    first, launcher = run_search(create_plan(trials=2, prune=False))
    assert len(launcher.launched) == 4
    again, launcher = run_search(create_plan(trials=2, prune=False))
    assert launcher.launched == []
    assert again.best_trial() == first.best_trial()
    more, launcher = run_search(create_plan(trials=4, prune=False), batch_size=3)
    assert len(launcher.launched) == 4
    assert len(more.ranked_trials()) == 4


class KilledError(Exception):
    """Stands for a killed process."""


class DyingLauncher:
    """A launcher that dies instead of starting its third run."""

    def __init__(self, launcher: Any) -> None:
        self.launcher, self.runs = launcher, 0

    def launch(self, jobs: Sequence[Job], on_event: EventCallback) -> Iterator[Outcome]:
        self.runs += len(jobs)
        if self.runs > 2:
            raise KilledError
        yield from self.launcher.launch(jobs, on_event)


def test_a_trial_that_was_killed_between_its_seeds_is_resumed(
    create_plan: CreatePlan, run_search: RunSearch
) -> None:
    undisturbed, _ = run_search(create_plan(seeds=(100, 101), prune=False))
    values = {t.params["lr"]: t.value for t in undisturbed.ranked_trials()}
    plan = create_plan(seeds=(101, 100), prune=False, sampler="grid")
    _, launcher = run_search(create_plan(seeds=(7,), trials=1))
    with pytest.raises(KilledError):
        run_search(plan, launcher=DyingLauncher(type(launcher)()))
    search, _ = run_search(plan)
    assert {t.params["lr"]: t.value for t in search.ranked_trials()} == pytest.approx(values)
    assert search.count_ended() == (4, 0)


def test_a_pruned_run_is_stopped_and_its_other_seeds_are_not_started(
    create_plan: CreatePlan,
    run_search: RunSearch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search_module, "PRUNER_STARTUP_TRIALS", 1)
    # With one task nothing is forgotten: all rates but the last two learn.
    space = "[finetune]\nlr = [0.05, 0.1, 0.2, 1e-9, 2e-9]\n"
    config = {"per_class": 60, "test_per_class": 20, "tasks": 1, "encoder": "flatten"}
    plan = create_plan(space, sampler="grid", config=config)
    search, launcher = run_search(plan)
    pruned = [t for t in search.trials() if t.state is TrialState.PRUNED]
    assert pruned
    assert all(t.number > 0 for t in pruned)
    started = {job.id for job in launcher.launched}
    for trial in pruned:
        configs = plan.configs(trial.params)
        finished = [c for c in configs if RunDirectory(tmp_path, c.id).record.exists()]
        assert len(finished) < 2
        assert configs[1].id not in started or len(finished) == 1
    assert [t for t in pruned if max(t.intermediate_values) not in (6, 12)], (
        "no run was stopped along its stream: the test needs other rates"
    )
    assert search.best_trial().params["lr"] > 1e-3


def test_diverged_trials_are_pruned_and_failed_ones_are_retried(
    create_plan: CreatePlan, run_search: RunSearch
) -> None:
    space = '[finetune]\nlr = [0.01, 1e5]\naugmentation = ["full", "foll"]\n'
    search, _ = run_search(create_plan(space, sampler="grid"))
    results = {
        (t.params["lr"], t.params["augmentation"]): (t.state, t.user_attrs.get("error", ""))
        for t in search.trials()
    }
    assert results[0.01, "full"] == (TrialState.COMPLETE, "")
    assert results[1e5, "full"][0] is TrialState.PRUNED
    assert "diverged" in results[1e5, "full"][1]
    for lr in (0.01, 1e5):
        assert results[lr, "foll"][0] is TrialState.FAIL
        assert "unknown augmentation 'foll': did you mean 'full'" in results[lr, "foll"][1]
    _, launcher = run_search(create_plan(space, sampler="grid"))
    assert {job.config.method.fields.augmentation for job in launcher.launched} == {"foll"}


def test_a_value_out_of_range_is_refused_before_the_first_run(create_plan: CreatePlan) -> None:
    error = r"lr -1\.0 is out of range: give a number in \(0, 1e\+06\]$"
    with pytest.raises(SteradError, match=error):
        create_plan("[finetune]\nlr = [-1.0]\n", sampler="grid")


def test_a_search_without_complete_trials_names_the_reason(
    create_plan: CreatePlan, run_search: RunSearch
) -> None:
    search, _ = run_search(create_plan('[finetune]\naugmentation = ["foll"]\n'))
    error = r"no trial .* is complete \(unknown augmentation 'foll'"
    with pytest.raises(SteradError, match=error):
        search.best_trial()


class LockingLauncher:
    """A launcher during whose first run another process locks the storage."""

    def __init__(self, storage: Path, stack: ExitStack) -> None:
        self.storage, self.stack = storage, stack

    def launch(self, jobs: Sequence[Job], on_event: EventCallback) -> Iterator[Outcome]:
        outcomes = [read_outcome(job, run_job(job.to_json())) for job in jobs]
        lock = self.stack.enter_context(open(f"{self.storage}.lock", "ab"))  # noqa: SIM115
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield from outcomes


def test_a_result_is_kept_when_the_storage_is_lost(
    create_plan: CreatePlan,
    run_search: RunSearch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage, "STORAGE_TIMEOUT_S", 0.2)
    plan = create_plan("[finetune]\nlr = [0.1]\n", sampler="grid", seeds=(100,))
    with ExitStack() as stack, pytest.raises(SteradError, match="finished runs are kept"):
        run_search(plan, launcher=LockingLauncher(tmp_path / "search.journal", stack))
    (record,) = tmp_path.glob("*/record.json")
    before = record.stat().st_mtime_ns
    search, _ = run_search(plan)
    assert search.best_trial().params == {"lr": 0.1}
    assert record.stat().st_mtime_ns == before, "the run is not repeated"
    steps = sorted(search.best_trial().intermediate_values)
    assert steps == list(range(1, 7)), "earlier evaluations are reported"
