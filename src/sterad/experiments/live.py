"""Live runs: a feed without a known end; each image is predicted before it is learned from.

There is no test set. A moment of the record is a stretch of the feed, and its accuracy is the share
of its images that were predicted correctly just before they were learned from.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.session import LossRecorder, Session
from sterad.labels import LabelIndex
from sterad.methods import build_learner
from sterad.results.record import Moment, StreamFacts
from sterad.streams import Batch
from sterad.streams.live import LiveStream


class LiveSession(Session):
    """A learner on a feed; a moment is added whenever a stretch of the feed is full."""

    def __init__(self, config: RunConfig, execution: Execution, feed: LiveStream) -> None:
        """Wait for the first batch, which shows the shape of the inputs."""
        first = next(feed, None)
        if first is None:
            raise SteradError("the feed ended before its first batch: give at least one")
        shape = tuple(first.x.shape[1:])
        problem = config.problem(shape, execution)
        if len(shape) == 1:
            problem = replace(problem, encoder="mlp")
        self.learner = build_learner(config.method.name, config.method.fields, problem)
        self.feed, self.waiting = feed, [first]
        self.stretch: int = config.stream.fields.stretch
        self.total_steps = self.total_samples = None  # the length of a feed is unknown
        self.evaluations = ("the next images",)
        self.test_then_train, self.boundary_steps = True, frozenset()
        self.counts: list[list[int]] = [[]]
        """Images of each class in each stretch; the last one is not complete."""
        self.stretch_correct = 0
        self.axes, self.loss_recorder = None, LossRecorder((), 0)
        self.begin()

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of the feed."""
        return chain(iter(self.waiting), self.feed)

    def learn(self, batch: Batch) -> Any:
        """Predict, count, learn."""
        before = self.correct
        loss = super().learn(batch)
        self.stretch_correct += self.correct - before
        counts = np.bincount(batch.y.numpy(), minlength=len(self.feed.labels.known)).tolist()
        row = self.counts[-1] + [0] * (len(counts) - len(self.counts[-1]))
        self.counts[-1] = [a + b for a, b in zip(row, counts, strict=True)]
        return loss

    def evaluate_if_planned(self) -> Moment | None:
        """Add a moment if the stretch is full."""
        return self._end_stretch() if sum(self.counts[-1]) >= self.stretch else None

    def finish(self) -> Moment | None:
        """Add a moment for the last stretch, which may be shorter."""
        return self._end_stretch() if sum(self.counts[-1]) else None

    def _end_stretch(self) -> Moment:
        accuracy = self.stretch_correct / sum(self.counts[-1])
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
        self.counts.append([])
        self.stretch_correct = 0
        return moment

    def facts(self) -> StreamFacts:
        """Return the description of the feed for the record."""
        classes = len(self.feed.labels.known)
        proportions = [row + [0] * (classes - len(row)) for row in self.counts if row]
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
            "counts": self.counts,
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
        self.counts, self.stretch_correct = state["counts"], state["stretch_correct"]


def live_config(**values: Any) -> RunConfig:
    """Return the config of a live run from flat names, as for `RunConfig.of`."""
    return RunConfig.of(**(values | {"dataset": "feed", "stream": "live"}))
