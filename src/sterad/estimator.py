"""OnlineClassifier: a classifier on arrays with partial_fit, predict and score."""

import dataclasses
import functools
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sterad.data.arrays import as_inputs
from sterad.encoders import ENCODERS
from sterad.engine.engine import DivergenceError, GradientGuard
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.checkpoint import load_checkpoint, save_checkpoint
from sterad.files import reading
from sterad.labels import LabelIndex, to_python_labels
from sterad.methods import METHODS, Learner, Problem, Replay, build_learner
from sterad.methods.base.learner import PREDICTION_BATCH_SIZE, check_shape
from sterad.methods.base.rollback import Rollback
from sterad.streams import Batch
from sterad.streams.batch import to_unit
from sterad.threads import cores
from sterad.validation import BatchSize, MemorySize, Seed, Width, build, check_value

Arrays = npt.ArrayLike | Tensor
OnDivergence = Literal["raise", "skip"]
OWNER = "OnlineClassifier"
MAX_INPUT_VALUES = 1 << 26
"""Values of one input in a saved classifier; a damaged shape may need any amount of memory."""
S = TypeVar("S", bound="OnlineClassifier")
P = ParamSpec("P")
T = TypeVar("T")


def _one_thread_at_a_time(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Make a method wait for calls of the classifier in other threads."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return method(self, *args, **kwargs)

    return call


class OnlineClassifier:
    """A classifier that learns incrementally: each image once, new classes at any time.

    Images are uint8 or floats in [0, 1], (n, h, w), (n, c, h, w) or (n, h, w, c); feature vectors
    are (n, d) floats and use an MLP encoder. Labels are integers or strings.

    >>> classifier = OnlineClassifier("agd-fd", memory=20, fields={"views": 1, "projection": 8})
    >>> x = np.eye(4, dtype=np.float32).repeat(8, axis=0)
    >>> y = np.array(["north", "east", "south", "west"]).repeat(8)
    >>> classifier.partial_fit(x, y).classes_.tolist()
    ['north', 'east', 'south', 'west']
    """

    def __init__(
        self,
        method: str = "agd-fd",
        memory: MemorySize = 500,
        *,
        encoder: str | None = None,
        width: Width = 20,
        batch_size: BatchSize = 10,
        flip: bool = False,
        seed: Seed = 0,
        device: str = "cpu",
        fields: dict[str, Any] | None = None,
        on_divergence: OnDivergence = "raise",
    ) -> None:
        """Check the arguments; the first call of `partial_fit` builds the network.

        fields: values of the fields of the method, see `sterad train METHOD --help`.
        encoder: a registered name (default: resnet18 for images, mlp for feature vectors).
        flip: whether a mirrored image keeps its class.
        on_divergence: what to do with a batch that would destroy the network, for example because
            of an outlier: nothing of it is learned, then raise an error, or skip and count it.
        """
        self.method = METHODS.resolve(method)
        self.config = build(METHODS[self.method].Config, fields or {})
        self.memory = check_value("memory", memory, MemorySize)
        self.width = check_value("width", width, Width)
        self.batch_size = check_value("batch_size", batch_size, BatchSize)
        self.encoder = None if encoder is None else ENCODERS.resolve(encoder)
        self.flip, self.seed = check_value("flip", flip, bool), check_value("seed", seed, Seed)
        self.execution = Execution.from_options(device=device, precision="float32", compile=False)
        self.on_divergence = check_value("on_divergence", on_divergence, OnDivergence)
        self.skipped_batches_ = 0
        """Number of batches that were skipped because they would have destroyed the network."""
        self._labels = LabelIndex()
        self._learner: Learner | None = None
        self._is_consolidated = False
        self._locks: dict[int, threading.RLock] = {}

    @property
    def _lock(self) -> threading.RLock:
        """The lock of this process: a forked one may inherit a lock that is never released."""
        return self._locks.setdefault(os.getpid(), threading.RLock())

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes without the locks, which cannot be copied."""
        return self.__dict__ | {"_locks": {}}

    @property
    def classes_(self) -> npt.NDArray[np.generic]:
        """Labels seen so far, in order of first appearance: the columns of `predict_proba`."""
        return np.array(self._labels.known)

    @_one_thread_at_a_time
    def partial_fit(self, x: Arrays, y: Arrays) -> "OnlineClassifier":
        """Learn from images in the given order, each once; new labels may appear."""
        inputs, labels = self._check_pairs(x, y)
        learner = self._learner or self._build(inputs.shape[1:])
        check_shape(inputs.shape[1:], learner.problem)
        # Assigned after the checks, so that a call with invalid arrays changes nothing.
        self._learner, self._is_consolidated = learner, False
        for number, chunk in enumerate(_chunks(inputs, self.batch_size)):
            start = number * self.batch_size
            self._learn(chunk, labels[start : start + self.batch_size], start)
        return self

    def _learn(self, x: Tensor, labels: list[int | str], start: int) -> None:
        """Learn from one batch, or from nothing of it; `start` is its first row in the call."""
        learner, known = self._fitted(), list(self._labels.known)
        index = torch.from_numpy(self._labels.encode(labels))
        rollback = Rollback(learner, index)
        try:
            loss = learner.observe(Batch(x, index))
            if loss is not None and not bool(torch.isfinite(loss)):
                raise DivergenceError(f"the loss is {float(loss)}")
        except DivergenceError as error:
            self._labels = LabelIndex(known)
            self._learner = rollback.restore(lambda: self._build(learner.problem.input_shape))
            self.skipped_batches_ += 1
            if self.on_divergence == "raise":
                rows = f"rows {start} to {start + len(labels) - 1}"
                raise SteradError(
                    f"{error}: nothing of {rows} was learned, and the classifier is as before; "
                    "remove outliers from them, choose a smaller lr, or use on_divergence='skip'"
                ) from error

    def follow(self, feed: Iterable[tuple[Arrays, Arrays]]) -> "OnlineClassifier":
        """Learn from an iterable of (images, labels) until it ends."""
        for x, y in feed:
            self.partial_fit(x, y)
        return self

    @_one_thread_at_a_time
    def predict(self, x: Arrays) -> npt.NDArray[np.generic]:
        """Return the label of each image."""
        scores, columns = self._scores(x)
        best: npt.NDArray[np.generic] = self.classes_[columns[scores.argmax(dim=1)].numpy()]
        return best

    @_one_thread_at_a_time
    def predict_proba(self, x: Arrays) -> npt.NDArray[np.float64]:
        """Return (n, len(classes_)) probabilities; classes that cannot be predicted yet have 0."""
        scores, columns = self._scores(x)
        table = torch.zeros(len(scores), len(self._labels.known), dtype=torch.float64)
        table[:, columns] = scores.double().softmax(dim=1)
        probabilities: npt.NDArray[np.float64] = table.numpy()
        return probabilities

    @_one_thread_at_a_time
    def score(self, x: Arrays, y: Arrays) -> float:
        """Return the accuracy: the share of images whose label is predicted."""
        inputs, truth = self._check_pairs(x, y)
        return float(np.mean(self.predict(inputs) == np.array(truth)))

    @_one_thread_at_a_time
    def save(self, path: str | Path) -> None:
        """Write the complete state to one file; `load` restores it bit for bit."""
        learner = self._fitted()
        state = {
            "choices": self._arguments(),
            "fields": dataclasses.asdict(self.config),
            "labels": self._labels.known,
            "input_shape": learner.problem.input_shape,
            "learner": learner.state_dict(),
            "skipped_batches": self.skipped_batches_,
        }
        save_checkpoint(Path(path), OWNER, state)

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu") -> "OnlineClassifier":
        """Read what `save` wrote; nothing in the file is executed."""
        if not Path(path).is_file():
            raise SteradError(f"there is no file {str(path)!r}: give the path that save() wrote")
        remedy = "give the path of a file that save() wrote"
        state = load_checkpoint(Path(path), OWNER, remedy)
        with reading(path, "load it with the version of sterad that wrote it, or train again"):
            loaded = cls(**state["choices"], device=device, fields=state["fields"])
            loaded._labels = LabelIndex(to_python_labels(state["labels"]))
            if math.prod(state["input_shape"]) > MAX_INPUT_VALUES:
                raise ValueError(f"its inputs have the shape {state['input_shape']}")
            loaded._learner = loaded._build(tuple(state["input_shape"]))
            loaded._learner.load_state_dict(state["learner"])
            if len(loaded._learner.seen) and loaded._learner.seen[-1] >= len(state["labels"]):
                raise ValueError("it knows fewer labels than classes")
            loaded.skipped_batches_ = int(state["skipped_batches"])
        return loaded

    def _arguments(self) -> dict[str, Any]:
        names = (
            "method",
            "memory",
            "encoder",
            "width",
            "batch_size",
            "flip",
            "seed",
            "on_divergence",
        )
        return {name: getattr(self, name) for name in names}

    def _build(self, input_shape: tuple[int, ...]) -> Learner:
        # As many parallel passes as torch has threads; their number does not change the bits.
        threads = 1 if self.execution.device != "cpu" else min(torch.get_num_threads(), cores())
        problem = Problem(
            input_shape=input_shape,
            classes=None,
            memory=self.memory,
            flip=self.flip,
            encoder=self.encoder or ("resnet18" if len(input_shape) == 3 else "mlp"),
            width=self.width,
            seed=self.seed,
            execution=dataclasses.replace(self.execution, view_threads=threads),
        )
        learner = build_learner(self.method, self.config, problem)
        if isinstance(learner, Replay):
            learner.engine.guard = GradientGuard()
        return learner

    def _fitted(self) -> Learner:
        if self._learner is None:
            raise SteradError("nothing has been learned yet: call partial_fit first")
        return self._learner

    def _check_pairs(self, x: Arrays, y: Arrays) -> tuple[npt.NDArray[Any], list[int | str]]:
        inputs = as_inputs(x)
        labels = self._labels.check(y.tolist() if isinstance(y, Tensor) else y)
        if len(inputs) == 0:
            raise SteradError("the batch is empty: give at least one image")
        if len(inputs) != len(labels):
            raise SteradError(
                f"there are {len(inputs)} images and {len(labels)} labels: give one label per image"
            )
        return inputs, labels

    def _scores(self, x: Arrays) -> tuple[Tensor, Tensor]:
        learner = self._fitted()
        inputs = as_inputs(x)
        if not self._is_consolidated:
            learner.consolidate()
            self._is_consolidated = True
        chunks = [learner.scores(chunk) for chunk in _chunks(inputs, PREDICTION_BATCH_SIZE)]
        scores = torch.cat([part for part, _ in chunks])
        if not bool(torch.isfinite(scores).all()):
            raise SteradError(
                "the scores are not finite: the classifier has diverged; load the last saved one "
                "and choose a smaller lr"
            )
        return scores, chunks[0][1]


def _chunks(inputs: npt.NDArray[Any], size: int) -> Iterator[Tensor]:
    # Copies, because torch does not accept read-only arrays.
    for start in range(0, max(len(inputs), 1), size):
        yield to_unit(torch.from_numpy(inputs[start : start + size].copy()))
