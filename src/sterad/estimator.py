"""OnlineClassifier: a classifier on arrays with partial_fit, predict and score."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sterad.data.arrays import as_inputs
from sterad.encoders import ENCODERS
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.checkpoint import load_checkpoint, save_checkpoint
from sterad.labels import LabelIndex
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.methods.base.learner import PREDICTION_BATCH_SIZE, check_shape
from sterad.streams import Batch
from sterad.streams.batch import to_unit
from sterad.threads import cores
from sterad.validation import BatchSize, MemorySize, Seed, Width, build, check_value

Arrays = npt.ArrayLike | Tensor
OWNER = "OnlineClassifier"


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
    ) -> None:
        """Check the arguments; the first call of `partial_fit` builds the network.

        fields: values of the fields of the method, see `sterad train METHOD --help`.
        encoder: a registered name (default: resnet18 for images, mlp for feature vectors).
        flip: whether a mirrored image keeps its class.
        """
        self.method = METHODS.resolve(method)
        self.config = build(METHODS[self.method].Config, fields or {})
        self.memory = check_value("memory", memory, MemorySize)
        self.width = check_value("width", width, Width)
        self.batch_size = check_value("batch_size", batch_size, BatchSize)
        self.encoder = None if encoder is None else ENCODERS.resolve(encoder)
        self.flip, self.seed = check_value("flip", flip, bool), check_value("seed", seed, Seed)
        self.execution = Execution.from_options(device=device, precision="float32", compile=False)
        self._labels = LabelIndex()
        self._learner: Learner | None = None
        self._is_consolidated = False

    @property
    def classes_(self) -> npt.NDArray[np.generic]:
        """Labels seen so far, in order of first appearance: the columns of `predict_proba`."""
        return self._labels.array()

    def partial_fit(self, x: Arrays, y: Arrays) -> "OnlineClassifier":
        """Learn from images in the given order, each once; new labels may appear."""
        inputs, labels = self._check_pairs(x, y)
        learner = self._learner or self._build(inputs.shape[1:])
        check_shape(inputs.shape[1:], learner.problem)
        indices = torch.from_numpy(self._labels.encode(labels)).split(self.batch_size)
        # Assigned after the checks, so that a call with invalid arrays changes nothing.
        self._learner, self._is_consolidated = learner, False
        for chunk, index in zip(_chunks(inputs, self.batch_size), indices, strict=True):
            loss = learner.observe(Batch(chunk, index))
            if loss is not None and not bool(torch.isfinite(loss)):
                raise SteradError(
                    f"the loss is {float(loss)}: the classifier has diverged and cannot be used "
                    "anymore; load the last saved one and choose a smaller lr"
                )
        return self

    def follow(self, feed: Iterable[tuple[Arrays, Arrays]]) -> "OnlineClassifier":
        """Learn from an iterable of (images, labels) until it ends."""
        for x, y in feed:
            self.partial_fit(x, y)
        return self

    def predict(self, x: Arrays) -> npt.NDArray[np.generic]:
        """Return the label of each image."""
        scores, columns = self._scores(x)
        best: npt.NDArray[np.generic] = self.classes_[columns[scores.argmax(dim=1)].numpy()]
        return best

    def predict_proba(self, x: Arrays) -> npt.NDArray[np.float64]:
        """Return (n, len(classes_)) probabilities; classes that cannot be predicted yet have 0."""
        scores, columns = self._scores(x)
        table = torch.zeros(len(scores), len(self._labels.known), dtype=torch.float64)
        table[:, columns] = scores.double().softmax(dim=1)
        probabilities: npt.NDArray[np.float64] = table.numpy()
        return probabilities

    def score(self, x: Arrays, y: Arrays) -> float:
        """Return the accuracy: the share of images whose label is predicted."""
        inputs, truth = self._check_pairs(x, y)
        return float(np.mean(self.predict(inputs) == np.array(truth)))

    def save(self, path: str | Path) -> None:
        """Write the complete state to one file; `load` restores it bit for bit."""
        learner = self._fitted()
        state = {
            "choices": self._arguments(),
            "fields": dataclasses.asdict(self.config),
            "labels": self._labels.known,
            "input_shape": learner.problem.input_shape,
            "learner": learner.state_dict(),
        }
        save_checkpoint(Path(path), OWNER, state)

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu") -> "OnlineClassifier":
        """Read what `save` wrote; nothing in the file is executed."""
        if not Path(path).is_file():
            raise SteradError(f"there is no file {str(path)!r}: give the path that save() wrote")
        state = load_checkpoint(Path(path), OWNER, "give the path of a file that save() wrote")
        try:
            loaded = cls(**state["choices"], device=device, fields=state["fields"])
            loaded._labels = LabelIndex(state["labels"])
            loaded._learner = loaded._build(tuple(state["input_shape"]))
            loaded._learner.load_state_dict(state["learner"])
        except (KeyError, TypeError, RuntimeError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise SteradError(
                f"{str(path)!r} does not fit this version of sterad ({reason}): "
                "load it with the version that wrote it, or train again"
            ) from error
        return loaded

    def _arguments(self) -> dict[str, Any]:
        names = ("method", "memory", "encoder", "width", "batch_size", "flip", "seed")
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
        return build_learner(self.method, self.config, problem)

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
