"""OnlineClassifier: a scikit-learn classifier with partial_fit, predict and save."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from sterad.errors import not_fitted
from sterad.estimator.exporting import Exporting
from sterad.estimator.finished import FinishedState, ProcessLock, chunks_of
from sterad.estimator.inputs import Arrays, InputFormat, check_inputs, check_weights
from sterad.estimator.learning_call import LearningCall, check_declared, check_rows, declare
from sterad.estimator.parameters import Parameters
from sterad.estimator.recipe import Recipe, check_call_options, use_threads
from sterad.estimator.saved_classifier import (
    from_bytes,
    read_classifier,
    restore_state,
    state_of,
    to_bytes,
)
from sterad.experiments.checkpoint import save_checkpoint
from sterad.labels import LabelIndex
from sterad.methods.base.learner import check_shape
from sterad.methods.base.prediction_copy import refresh

OWNER = "OnlineClassifier"


class OnlineClassifier(Parameters, Exporting):
    """A classifier that learns incrementally: each image once, new classes at any time.

    Images are uint8 or floats in [0, 1], (n, h, w), (n, c, h, w) or (n, h, w, c); feature vectors
    are (n, d) numbers and use an MLP encoder. Labels are integers or strings.

    It is a scikit-learn classifier: `clone`, pipelines and searches work. A call of `fit` or
    `partial_fit` that fails leaves the classifier as it was. Threads may predict while another one
    learns: predictions use the state after the last finished call.

    >>> classifier = OnlineClassifier("agd-fd", memory=20, views=1, projection=8)
    >>> x = np.eye(4, dtype=np.float32).repeat(8, axis=0)
    >>> y = np.array(["north", "east", "south", "west"]).repeat(8)
    >>> classifier.partial_fit(x, y)
    OnlineClassifier('agd-fd', memory=20, projection=8, views=1)
    >>> classifier.classes_.tolist(), classifier.seen_classes_.tolist()[:2]
    (['east', 'north', 'south', 'west'], ['north', 'east'])
    """

    def __init__(
        self,
        method: Any = "agd-fd",
        memory: Any = 500,
        *,
        encoder: Any = None,
        frozen: bool = False,
        train_from: str | None = None,
        encoder_lr: float | None = None,
        weights: Any = None,
        input_mean: tuple[float, ...] = (),
        input_std: tuple[float, ...] = (),
        input_size: int | None = None,
        retrieval: Any = None,
        optimizer: Any = None,
        augment: Any = None,
        classifier: Any = None,
        width: int = 20,
        batch_size: int = 10,
        flip: bool = False,
        seed: int = 0,
        device: str = "cpu",
        precision: str | None = None,
        threads: int | None = None,
        compile: bool | None = None,
        on_divergence: str = "raise",
        **fields: Any,
    ) -> None:
        """Store the arguments; the first call of `fit` or `partial_fit` checks them.

        method: a registered name, or a subclass of Learner.
        memory: the capacity, or a memory such as `ClassBalanced(500)`, which is copied.
        encoder: a registered name, timm:NAME, torchvision:NAME, hf:NAME, FILE.py:FUNCTION, a torch
            module, or a function that makes one (default: the method's, and an MLP in place of a
            ResNet for feature vectors).
        frozen, train_from, encoder_lr, weights: which weights of the encoder are trained, with
            which learning rate, and the file of the first ones.
        input_mean, input_std, input_size: the inputs that the encoder expects.
        retrieval, optimizer, augment, classifier: names, or objects in their place.
        flip: whether a mirrored image keeps its class.
        precision, threads, compile: how the network is computed (default: chosen as for a run, from
            the images and the machine; never more threads than torch uses). A saved classifier
            keeps its precision.
        on_divergence: what to do with a batch that would destroy the network, for example because
            of an outlier: "raise" an error, and nothing of the call is learned, or "skip" the batch
            and count it.
        fields: values of the fields of the method, see `sterad train METHOD --help`.
        """
        self.method = method
        self.memory = memory
        self.encoder = encoder
        self.frozen = frozen
        self.train_from = train_from
        self.encoder_lr = encoder_lr
        self.weights = weights
        self.input_mean = input_mean
        self.input_std = input_std
        self.input_size = input_size
        self.retrieval = retrieval
        self.optimizer = optimizer
        self.augment = augment
        self.classifier = classifier
        self.width = width
        self.batch_size = batch_size
        self.flip = flip
        self.seed = seed
        self.device = device
        self.precision = precision
        self.threads = threads
        self.compile = compile
        self.on_divergence = on_divergence
        self._set_fields(fields)
        self._lock = ProcessLock()
        self._finished: FinishedState | None = None

    def fit(self, X: Arrays, y: Arrays, sample_weight: Arrays | None = None) -> Self:
        """Forget everything, then learn from all rows in the given order, each once."""
        with self._lock:
            self._finished = self._learn(None, X, y, None, sample_weight)
        return self

    def partial_fit(
        self,
        X: Arrays,
        y: Arrays,
        classes: Arrays | None = None,
        sample_weight: Arrays | None = None,
    ) -> Self:
        """Learn from all rows in the given order, each once; new labels may appear.

        classes: all labels that will ever appear, in the first call; other labels are refused from
            then on (default: any label may appear).
        sample_weight: how often each row is learned, whole numbers; 0 leaves it out.
        """
        with self._lock:
            self._finished = self._learn(self._finished, X, y, classes, sample_weight)
        return self

    def follow(self, feed: Iterable[tuple[Arrays, Arrays]]) -> Self:
        """Learn from an iterable of (images, labels) until it ends."""
        for x, y in feed:
            self.partial_fit(x, y)
        return self

    def _learn(
        self, before: FinishedState | None, x: Any, y: Any, classes: Any, weights: Any
    ) -> FinishedState:
        """Return the state after a call; nothing of `self` and `before` changes if it fails."""
        params = self.get_params()
        check_call_options(params)
        inputs, names = check_inputs(x)
        labels, declared = check_rows(inputs, y), declare(before, classes)
        if before is None:
            form = InputFormat(inputs.shape[1:], names)
            recipe = Recipe.of(params, form.shape)
        else:
            form, recipe = before.format, before.recipe
            form.check(inputs, names)
            check_shape(inputs.shape[1:], recipe.problem)
        known = LabelIndex(() if before is None else before.labels)
        check_declared(known.check(labels), declared)
        if (times := check_weights(weights, len(inputs))) is not None:
            rows = np.arange(len(inputs)).repeat(times)
            inputs, labels = inputs[rows], [labels[row] for row in rows]
        with use_threads(recipe.execution.threads):
            learner = recipe.build() if before is None else before.take_learner()
            call = LearningCall(recipe, learner, known, params["on_divergence"])
            for number, chunk in enumerate(chunks_of(inputs, params["batch_size"])):
                start = number * params["batch_size"]
                call.learn(chunk, labels[start : start + len(chunk)], start)
            refresh(call.learner, batches=number + 1)
            skipped = call.skipped_batches + (0 if before is None else before.skipped_batches)
            if before is not None:
                before.close()
            return FinishedState(recipe, call.learner, call.labels.known, declared, form, skipped)

    @property
    def classes_(self) -> npt.NDArray[np.generic]:
        """Labels, sorted: the columns of `predict_proba`; those declared, or all seen so far."""
        return self._state().classes

    @property
    def seen_classes_(self) -> npt.NDArray[np.generic]:
        """Labels seen so far, in order of first appearance."""
        return np.array(self._state().labels)

    @property
    def n_features_in_(self) -> int:
        """Number of values of one input."""
        return math.prod(self._state().format.shape)

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """Names of the columns of the data frame that was learned first, if it was one."""
        names = self._state().format.names
        if names is None:
            raise AttributeError("the classifier was fitted without feature names")
        return np.array(names, dtype=object)

    @property
    def skipped_batches_(self) -> int:
        """Number of batches that were skipped because they would have destroyed the network."""
        return 0 if self._finished is None else self._finished.skipped_batches

    def predict(self, X: Arrays) -> npt.NDArray[np.generic]:
        """Return the label of each image."""
        scores, columns, classes = self._scores(X)
        best: npt.NDArray[np.generic] = classes[columns[scores.argmax(dim=1)].numpy()]
        return best

    def predict_proba(self, X: Arrays) -> npt.NDArray[np.float64]:
        """Return (n, len(classes_)) probabilities; classes that cannot be predicted yet have 0."""
        scores, columns, classes = self._scores(X)
        table = torch.zeros(len(scores), len(classes), dtype=torch.float64)
        table[:, columns] = scores.double().softmax(dim=1)
        probabilities: npt.NDArray[np.float64] = table.numpy()
        return probabilities

    def score(self, X: Arrays, y: Arrays, sample_weight: Arrays | None = None) -> float:
        """Return the accuracy: the (weighted) share of images whose label is predicted."""
        state = self._state()
        inputs, names = check_inputs(X)
        labels = LabelIndex(state.labels).check(check_rows(inputs, y))
        state.format.check(inputs, names)
        hits = self.predict(inputs) == np.array(labels)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(hits, weights=weights))

    def consolidate(self) -> Self:
        """Encode the whole memory with the current weights, so that class means are exact.

        Without this call, each call of `partial_fit` refreshes the features of a part of it.
        """
        with self._lock:
            state = self._state()
            with use_threads(state.recipe.execution.threads):
                learner = state.take_learner()
                refresh(learner)
                state.close()
                self._finished = state.followed_by(learner)
        return self

    def save(self, path: str | Path) -> None:
        """Write the complete state to one file; `load` restores it bit for bit.

        The file contains no objects that were given as arguments: give them to `load` again.
        """
        with self._lock:
            save_checkpoint(Path(path), OWNER, state_of(self._state()))

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu", **objects: Any) -> Self:
        """Read what `save` wrote; nothing in the file is executed.

        objects: the arguments of the constructor that were objects, such as `encoder=module`, and
            an encoder `FILE.py:FUNCTION`, whose code is run.
        """
        params, finished = read_classifier(path, OWNER, device, objects)
        loaded = cls(**params)
        loaded._finished = finished
        return loaded

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments and, as `save` writes it, what was learned."""
        with self._lock:
            state = {"params": self.get_params(), "built_with": None, "learned": b""}
            if self._finished is not None:
                state["built_with"] = self._finished.recipe.params
                state["learned"] = to_bytes(state_of(self._finished))
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build the learner again and load its state."""
        vars(self).update(state["params"])
        self._lock, self._finished = ProcessLock(), None
        if state["learned"]:
            self._finished = restore_state(from_bytes(state["learned"]), state["built_with"])

    def __sklearn_is_fitted__(self) -> bool:
        return self._finished is not None

    def _state(self) -> FinishedState:
        if self._finished is None:
            raise not_fitted("nothing has been learned yet: call partial_fit first")
        return self._finished

    def _consolidated(self) -> FinishedState:
        """Return the state, with everything fitted that predicts."""
        state = self._state()
        if state.needs_memory:
            with self._lock:  # the memory must not change while it is read
                state = self._state()
                state.learner()
                state.consolidate()
        state.consolidate()
        return state

    def _scores(self, x: Any) -> tuple[torch.Tensor, torch.Tensor, npt.NDArray[np.generic]]:
        state = self._state()
        inputs, names = check_inputs(x)
        state.format.check(inputs, names)
        with use_threads(state.recipe.execution.threads):
            state = self._consolidated()
            return *state.scores(inputs), state.classes
