import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from sterad.errors import SteradError
from sterad.experiments.launchers import Job, Outcome, Watch
from sterad.experiments.launchers.job import attempted, ended
from sterad.experiments.search import journal, searching
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.searching import Search
from sterad.results.run_directory import RunDirectory

Plans = Callable[..., SearchPlan]
Searched = Callable[..., tuple[Search, Any]]


@pytest.mark.parametrize("sampler", ["grid", "tpe"])
def test_every_point_is_worth_its_mean_over_the_seeds(
    plan: Plans, searched: Searched, tmp_path: Path, sampler: str
) -> None:
    search, here = searched(plan(sampler=sampler, prune=False), at_once=2)
    assert sorted(t.params["lr"] for t in search.ranked()) == [0.0001, 0.001, 0.01, 0.1]
    assert len(here.launched) == 8
    for trial in search.ranked():
        configs = search.plan.configs(trial.params)
        records = [RunDirectory(tmp_path, config.id).read_record() for config in configs]
        finals = [record.final_average_accuracy for record in records if record]
        assert trial.user_attrs["finals"] == finals
        assert trial.value == sum(finals) / 2
        assert sorted(trial.intermediate_values) == list(range(1, 13)), "5 moments and 2 ends"
        assert trial.intermediate_values[6] == finals[0]
    assert search.best().value == max(trial.value or 0 for trial in search.trials())
    assert search.missing() == 0


def test_a_second_call_continues_and_reads_what_is_finished(
    plan: Plans, searched: Searched
) -> None:
    first, here = searched(plan(trials=2, prune=False))
    assert len(here.launched) == 4
    again, idle = searched(plan(trials=2, prune=False))
    assert idle.launched == []
    assert again.best() == first.best()
    more, here = searched(plan(trials=4, prune=False), at_once=3)
    assert len(here.launched) == 4
    assert len(more.ranked()) == 4


class DeathError(Exception):
    """The process is killed, as far as a test in one process can say it."""


class Mortal:
    """A launcher that dies in the midst of its third run."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.runs = inner, 0

    def launch(self, jobs: Sequence[Job], watch: Watch) -> Iterator[Outcome]:
        self.runs += len(jobs)
        if self.runs > 2:
            raise DeathError
        yield from self.inner.launch(jobs, watch)


def test_a_trial_in_the_midst_of_its_seeds_is_taken_up(plan: Plans, searched: Searched) -> None:
    undisturbed, _ = searched(plan(seeds=(100, 101), prune=False, config={"memory": 0}))
    values = {t.params["lr"]: t.value for t in undisturbed.ranked()}
    wanted = plan(seeds=(101, 100), prune=False, sampler="grid")
    _, here = searched(plan(seeds=(7,), trials=1))
    with pytest.raises(DeathError):
        searched(wanted, launcher=Mortal(type(here)()))
    search, here = searched(wanted)
    assert {t.params["lr"]: t.value for t in search.ranked()} == pytest.approx(values)
    assert search.counted() == {"complete": 4, "stopped": 0}


def test_a_bad_run_is_stopped_on_its_way_and_its_other_seeds_are_not_begun(
    plan: Plans, searched: Searched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "STARTUP", 1)
    # One task, so that nothing is forgotten: learned at these rates and not at the last two.
    lrs = "[finetune]\nlr = [0.05, 0.1, 0.2, 1e-9, 2e-9]\n"
    config = {"per_class": 60, "test_per_class": 20, "tasks": 1, "encoder": "flatten"}
    made = plan(lrs, sampler="grid", config=config)
    search, here = searched(made)
    stopped = [t for t in search.trials() if t.state is TrialState.PRUNED]
    assert stopped
    assert all(t.number > 0 for t in stopped)
    ran = {job.id for job in here.launched}
    for trial in stopped:
        configs = made.configs(trial.params)
        finished = [c for c in configs if RunDirectory(tmp_path, c.id).record.exists()]
        assert len(finished) < 2
        assert configs[1].id not in ran or len(finished) == 1
    cut = [t for t in stopped if max(t.intermediate_values) not in (6, 12)]
    assert cut, "none was stopped along the stream: the test has lost its point"
    assert search.best().params["lr"] > 1e-3


def test_what_diverges_is_stopped_and_what_fails_is_told(plan: Plans, searched: Searched) -> None:
    text = '[finetune]\nlr = [0.01, 1e5]\naugmentation = ["full", "foll"]\n'
    search, _ = searched(plan(text, sampler="grid"))
    fates = {
        (t.params["lr"], t.params["augmentation"]): (t.state, t.user_attrs.get("error", ""))
        for t in search.trials()
    }
    assert fates[0.01, "full"] == (TrialState.COMPLETE, "")
    assert fates[1e5, "full"][0] is TrialState.PRUNED
    assert "diverged" in fates[1e5, "full"][1]
    for lr in (0.01, 1e5):
        assert fates[lr, "foll"][0] is TrialState.FAIL
        assert "unknown augmentation 'foll': did you mean 'full'" in fates[lr, "foll"][1]
    _, here = searched(plan(text, sampler="grid"))
    assert {job.config.method.fields.augmentation for job in here.launched} == {"foll"}, (
        "failures alone"
    )


def test_values_that_the_method_cannot_have_end_the_search(
    plan: Plans, searched: Searched, tmp_path: Path
) -> None:
    told = r"lr -1\.0 is out of range: give a number in \(0, 1e\+06\]$"
    with pytest.raises(SteradError, match=told):
        searched(plan("[finetune]\nlr = [-1.0]\n", sampler="grid"))
    assert not list(tmp_path.glob("*/record.json"))


def test_nothing_that_ended_is_said(plan: Plans, searched: Searched) -> None:
    search, _ = searched(plan('[finetune]\naugmentation = ["foll"]\n'))
    with pytest.raises(SteradError, match=r"no trial .* has ended \(unknown augmentation 'foll'"):
        search.best()


class Locks:
    """A launcher during whose first run another process takes the storage and keeps it."""

    def __init__(self, storage: Path, held: ExitStack) -> None:
        self.storage, self.held = storage, held

    def launch(self, jobs: Sequence[Job], watch: Watch) -> Iterator[Outcome]:
        outcomes = [ended(job, attempted(job.to_json())) for job in jobs]
        lock = self.held.enter_context(open(f"{self.storage}.lock", "ab"))  # noqa: SIM115
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield from outcomes


def test_a_storage_that_is_lost_on_the_way_loses_no_result(
    plan: Plans, searched: Searched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "PATIENCE", 0.2)
    made = plan("[finetune]\nlr = [0.1]\n", sampler="grid", seeds=(100,))
    with ExitStack() as held, pytest.raises(SteradError, match="finished runs are kept"):
        searched(made, launcher=Locks(tmp_path / "search.journal", held))
    (record,) = tmp_path.glob("*/record.json")
    before = record.stat().st_mtime_ns
    search, _ = searched(made)
    assert search.best().params == {"lr": 0.1}
    assert record.stat().st_mtime_ns == before, "read, not repeated"
    assert sorted(search.best().intermediate_values) == list(range(1, 7)), "and told in full"
