import os
import subprocess
import sys
import time

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from sterad.experiments.search import owner
from sterad.experiments.search.owner import alive, take_up


def running(study: optuna.Study, **said: object) -> None:
    trial = study.ask({"lr": FloatDistribution(0, 1)})
    alive(trial)
    trial.set_user_attr("owner", trial.user_attrs["owner"] | said)


def dead() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_trials_of_a_dead_process_are_taken_up_with_their_points() -> None:
    study = optuna.create_study()
    running(study, process=dead())
    (before,) = study.trials
    assert take_up(study) == 1
    assert take_up(study) == 0
    again = study.ask({"lr": FloatDistribution(0, 1)})
    assert again.params == before.params
    assert [t.state for t in study.trials] == [TrialState.FAIL, TrialState.RUNNING]


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ({"process": os.getppid()}, 0),
        ({"process": os.getpid()}, 1),
        ({"host": "elsewhere", "seen": time.time()}, 0),
        ({"host": "elsewhere", "seen": time.time() - 2 * owner.SILENCE}, 1),
    ],
)
def test_who_is_taken_to_be_gone(said: dict[str, object], taken: int) -> None:
    study = optuna.create_study()
    running(study, **said)
    assert take_up(study) == taken


def test_a_trial_that_was_just_asked_for_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    study = optuna.create_study()
    study.ask()
    assert take_up(study) == 0
    monkeypatch.setattr(owner, "SILENCE", -1)
    assert take_up(study) == 0, "it has no point to try again"
    assert study.trials[0].state is TrialState.FAIL
