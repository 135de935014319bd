"""FinishedState: what a classifier knows after a finished call of `partial_fit`."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.estimator.inputs import Array, InputFormat
from sterad.estimator.recipe import Recipe
from sterad.methods import Learner
from sterad.methods.base.learner import PREDICTION_BATCH_SIZE
from sterad.methods.base.prediction_copy import prediction_copy, reads_memory
from sterad.methods.base.rollback import Snapshot, replay_of
from sterad.streams.batch import to_unit

Label = int | str


class ProcessLock(AbstractContextManager[None]):
    """A reentrant lock of each process: a forked one may inherit a lock that is never released."""

    def __init__(self) -> None:
        self._locks: dict[int, threading.RLock] = {}

    @property
    def _lock(self) -> threading.RLock:
        return self._locks.setdefault(os.getpid(), threading.RLock())

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class FinishedState:
    """Labels, the learner, and a copy of it that predicts while the next call learns.

    Its predictions never change. The learner belongs to the next call, which takes it; if that
    call fails, a learner is restored from the snapshot.
    """

    def __init__(
        self,
        recipe: Recipe,
        learner: Learner,
        labels: Sequence[Label],
        declared: Sequence[Label] | None,
        format: InputFormat,
        skipped_batches: int,
    ) -> None:
        """Copy what predicts; `labels` are in order of appearance, `declared` are all allowed."""
        self.recipe, self.labels, self.format = recipe, tuple(labels), format
        self.declared = None if declared is None else tuple(declared)
        self.skipped_batches = skipped_batches
        self.snapshot = Snapshot(learner)
        self.predictor = prediction_copy(learner)
        self.needs_memory = reads_memory(learner)
        self._learner: Learner | None = learner
        self._is_consolidated = False
        self._lock = ProcessLock()

    @property
    def classes(self) -> npt.NDArray[np.generic]:
        """All labels, sorted: the columns of `probabilities`."""
        return np.array(sorted({*self.labels, *(self.declared or ())}))

    def learner(self) -> Learner:
        """Return the learner in this state, restored if a later call has failed."""
        if self._learner is None:
            self._learner = self.snapshot.restore(self.recipe.build)
        return self._learner

    def take_learner(self) -> Learner:
        """Return the learner, which the caller may change."""
        learner = self.learner()
        self._learner = None
        return learner

    def followed_by(self, learner: Learner) -> "FinishedState":
        """Return the same state with another learner."""
        return FinishedState(
            self.recipe, learner, self.labels, self.declared, self.format, self.skipped_batches
        )

    def close(self) -> None:
        """Record no longer what a call overwrites: it has succeeded."""
        self.snapshot.close()

    def consolidate(self) -> None:
        """Fit what predicts, once; other threads wait for it."""
        if self._is_consolidated:
            return
        with self._lock:
            if not self._is_consolidated:
                if self.predictor_needs_fit:
                    self.predictor.consolidate()
                self._is_consolidated = True

    @property
    def predictor_needs_fit(self) -> bool:
        """Whether class means are not there yet."""
        replay = replay_of(self.predictor)
        return replay is None or replay.fitted is None

    def scores(self, inputs: Array) -> tuple[Tensor, Tensor]:
        """Return (n, k) scores and the positions of the k columns in `classes`."""
        self.consolidate()
        chunks = [self.predictor.scores(chunk) for chunk in chunks_of(inputs)]
        scores = torch.cat([part for part, _ in chunks])
        # A class has the score -inf if none of the nearest neighbors belongs to it.
        if not bool((scores < torch.inf).all()):  # False for NaN
            raise SteradError(
                "the scores are not finite: the classifier has diverged; load the last saved one "
                "and choose a smaller lr"
            )
        order = {label: at for at, label in enumerate(self.classes.tolist())}
        positions = [order[self.labels[index]] for index in chunks[0][1].tolist()]
        return scores, torch.tensor(positions)


def chunks_of(inputs: Array, size: int = PREDICTION_BATCH_SIZE) -> Iterator[Tensor]:
    """Yield batches of inputs, pixels as floats; a single empty one without inputs."""
    for start in range(0, max(len(inputs), 1), size):
        # A copy, because torch does not accept read-only arrays.
        yield to_unit(torch.from_numpy(inputs[start : start + size].copy()))
