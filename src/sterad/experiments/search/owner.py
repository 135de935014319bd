"""Owner: which process a trial is in, so that a killed one's trials are taken up again."""

import os
import socket
import time
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, Trial, TrialState

SILENCE = 3600.0
"""Seconds without a word after which a process on another machine is taken to be gone."""


def alive(trial: Trial) -> None:
    """Say that this process works on a trial."""
    owner = {"host": socket.gethostname(), "process": os.getpid(), "seen": time.time()}
    trial.set_user_attr("owner", owner)


def take_up(study: Study) -> int:
    """Enqueue the points of abandoned trials anew; their runs continue from their checkpoints."""
    count = 0
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        count += _abandoned(trial) and _taken(study, trial)
    return count


def _taken(study: Study, trial: FrozenTrial) -> bool:
    try:
        study.tell(trial.number, state=TrialState.FAIL)
    except ValueError:
        return False  # another process was faster
    if trial.params:
        study.enqueue_trial(trial.params)
    return bool(trial.params)


def _abandoned(trial: FrozenTrial) -> bool:
    owner: dict[str, Any] = trial.user_attrs.get("owner", {})
    if owner.get("host") == socket.gethostname():
        mine = bool(owner["process"] == os.getpid())  # and it has only just begun
        return mine or not _exists(owner["process"])
    begun = trial.datetime_start
    seen: float = owner.get("seen", begun.timestamp() if begun else 0.0)
    return time.time() - seen > SILENCE


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
