"""Live runs: a feed without a known end; each image is predicted before it is learned from.

There is no test set. A moment of the record is a stretch of the feed, and its accuracy is the share
of its images that were predicted correctly just before they were learned from. A feed may never
end: from time to time neighboring stretches are merged, so that memory does not grow.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sterad.encoders.resnet import IMAGE_ENCODERS
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.session import LossRecorder, Session
from sterad.labels import LabelIndex
from sterad.results.record import Moment, StreamFacts
from sterad.streams import Batch
from sterad.streams.live import LiveStream

MAX_STRETCHES = 100
"""Complete stretches after which neighbors are merged and the next ones are twice as long."""
NO_BATCH = "the feed ended before its first batch: give at least one"
Counts = npt.NDArray[np.int64]


class LiveSession(Session):
    """A learner on a feed; a moment is added whenever a stretch of the feed is full."""

    def __init__(
        self,
        config: RunConfig,
        execution: Execution,
        feed: LiveStream,
        input_shape: tuple[int, ...] | None = None,
    ) -> None:
        """Wait for the first batch, which shows the shape of the inputs.

        input_shape: of an earlier part of the run; then the feed may have ended.
        """
        first = next(feed, None)
        if first is None and input_shape is None:
            raise SteradError(NO_BATCH)
        shape = tuple(first.x.shape[1:]) if first is not None else input_shape
        assert shape is not None
        problem = config.problem(shape, execution)
        if len(shape) == 1 and problem.encoder in IMAGE_ENCODERS:
            problem = replace(problem, encoder="mlp")
        self.learner = config.build_learner(problem)
        self.feed, self.waiting = feed, [] if first is None else [first]
        self.stretch: int = config.stream.fields.stretch
        self.total_steps = self.total_samples = None  # the length of a feed is unknown
        self.evaluations = ("the next images",)
        self.test_then_train, self.boundary_steps = True, frozenset()
        self.counts: list[Counts] = [np.zeros(0, np.int64)]
        """Images of each class in each stretch; the last one is not complete."""
        self.stretch_correct = 0
        self.axes, self.loss_recorder = None, LossRecorder((), 0)
        self.begin()

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of the feed; a run that continues needs none."""
        if not (self.waiting or self.step):
            raise SteradError(NO_BATCH)
        return chain(iter(self.waiting), self.feed)

    def learn(self, batch: Batch) -> Any:
        """Predict, count, learn."""
        before = self.correct
        loss = super().learn(batch)
        self.stretch_correct += self.correct - before
        counts = np.bincount(batch.y.numpy(), minlength=len(self.feed.labels.known))
        self.counts[-1] = _sum(self.counts[-1], counts)
        return loss

    def evaluate_if_planned(self) -> Moment | None:
        """Add a moment if the stretch is full."""
        return self._end_stretch() if self.counts[-1].sum() >= self.stretch else None

    def finish(self) -> Moment | None:
        """Add a moment for the last stretch, which may be shorter."""
        return self._end_stretch() if self.counts[-1].sum() else None

    def _end_stretch(self) -> Moment:
        accuracy = self.stretch_correct / int(self.counts[-1].sum())
        memory = self.learner.memory_counts(len(self.feed.labels.known))
        moment = Moment(
            step=self.step,
            samples=self.tested,
            boundary=False,
            anytime=True,
            seen=len(self.learner.seen),
            accuracy=accuracy,
            cells=(accuracy,),
            memory=() if memory is None else tuple(memory.tolist()),
        )
        self.moments.append(moment)
        self.counts.append(np.zeros(0, np.int64))
        self.stretch_correct = 0
        if len(self.moments) == MAX_STRETCHES:
            self._merge_stretches()
        return moment

    def _merge_stretches(self) -> None:
        """Merge each complete stretch with its neighbor."""
        pairs = range(0, MAX_STRETCHES, 2)
        self.moments = [self._merged_moment(first) for first in pairs]
        merged = [_sum(*self.counts[first : first + 2]) for first in pairs]
        self.counts = [*merged, self.counts[-1]]
        self.stretch *= 2

    def _merged_moment(self, first: int) -> Moment:
        samples = [int(row.sum()) for row in self.counts[first : first + 2]]
        moments = self.moments[first : first + 2]
        # The product is within 1e-9 of a whole number: the images predicted correctly.
        correct = sum(round(m.accuracy * n) for m, n in zip(moments, samples, strict=True))
        accuracy = correct / sum(samples)
        return replace(moments[1], accuracy=accuracy, cells=(accuracy,))

    def facts(self) -> StreamFacts:
        """Return the description of the feed for the record."""
        classes = len(self.feed.labels.known)
        none = np.zeros(classes, np.int64)
        proportions = [_sum(none, row).tolist() for row in self.counts if len(row)]
        return StreamFacts(
            name="live",
            samples=self.tested,
            steps=self.step,
            tasks=(tuple(range(classes)),),
            announced=False,
            class_names=tuple(map(str, self.feed.labels.known)),
            proportions=tuple(map(tuple, proportions)),
            description=f"live: {self.tested} images of {classes} classes in {self.step} batches",
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state; the feed itself cannot be stored."""
        return super().state_dict() | {
            "labels": self.feed.labels.known,
            "counts": [torch.from_numpy(row) for row in self.counts],
            "stretch": self.stretch,
            "stretch_correct": self.stretch_correct,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state; labels of the waiting batch get the indices of the restored state."""
        super().load_state_dict(state)
        names = self.feed.labels.known
        self.feed.labels = LabelIndex(state["labels"])
        self.waiting = [
            Batch(batch.x, torch.from_numpy(self.feed.labels.encode([names[i] for i in batch.y])))
            for batch in self.waiting
        ]
        self.counts = [torch.as_tensor(row, dtype=torch.int64).numpy() for row in state["counts"]]
        self.stretch = state.get("stretch", self.stretch)
        self.stretch_correct = state["stretch_correct"]


def _sum(first: Counts, second: Counts) -> Counts:
    """Return the sum of two rows of counts; the shorter one knows fewer classes."""
    total = np.zeros(max(len(first), len(second)), np.int64)
    total[: len(first)] = first
    total[: len(second)] += second
    return total


def live_config(**values: Any) -> RunConfig:
    """Return the config of a live run from flat names, as for `RunConfig.of`."""
    return RunConfig.of(**(values | {"dataset": "feed", "stream": "live"}))
