"""Live runs: a feed that nobody knows the end of, each image asked before it is learned.

There is no test set and no plan. A moment of the record is a stretch of the feed, and its accuracy
is the share of images in that stretch that were answered right just before they were learned.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import torch

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.session import Session
from sterad.labels import LabelIndex
from sterad.methods import Problem, build_learner
from sterad.results.record import Moment, StreamFacts
from sterad.streams import Batch
from sterad.streams.live import LiveStream


class LiveSession(Session):
    """A learner on its way through a feed; moments come as the feed goes."""

    def __init__(self, config: RunConfig, execution: Execution, feed: LiveStream) -> None:
        """Wait for the first batch, which shows the shape of the inputs."""
        first = next(feed, None)
        if first is None:
            raise SteradError("the feed ended before its first batch: give at least one")
        shape = tuple(first.x.shape[1:])
        settings = config.settings
        width = settings.width or config.dataset.fields.defaults().width
        problem = Problem(
            input_shape=shape,
            classes=None,
            memory=settings.memory,
            encoder=settings.encoder if len(shape) == 3 else "mlp",
            width=width,
            seed=settings.seed,
            execution=execution,
        )
        self.learner = build_learner(config.method.name, config.method.fields, problem)
        self.feed, self.waiting = feed, [first]
        self.stretch: int = config.stream.fields.stretch
        self.test_then_train, self.boundary_steps = True, frozenset()
        self.counts: list[list[int]] = [[]]
        """Images of each class in each stretch; the last is under way."""
        self.samples = self.stretch_right = 0
        self.axes = self.watch = None
        self.begin()

    @property
    def total_steps(self) -> int | None:
        """Nobody knows."""
        return None

    @property
    def total_samples(self) -> int | None:
        """Nobody knows."""
        return None

    @property
    def evaluations(self) -> tuple[str, ...]:
        """There is one: what comes next."""
        return ("the next images",)

    def batches(self) -> Iterator[Batch]:
        """Yield what the feed gives, as it gives it."""
        return chain(iter(self.waiting), self.feed)

    def learn(self, batch: Batch) -> Any:
        """Ask, count, learn."""
        before = self.right
        loss = super().learn(batch)
        self.stretch_right += self.right - before
        self.samples += len(batch)
        counts = np.bincount(batch.y.numpy(), minlength=len(self.feed.labels.known)).tolist()
        row = self.counts[-1] + [0] * (len(counts) - len(self.counts[-1]))
        self.counts[-1] = [a + b for a, b in zip(row, counts, strict=True)]
        return loss

    def evaluate_if_planned(self) -> Moment | None:
        """Close a stretch that is full."""
        return self._closed() if sum(self.counts[-1]) >= self.stretch else None

    def finish(self) -> Moment | None:
        """Close the last stretch."""
        return self._closed() if sum(self.counts[-1]) else None

    def _closed(self) -> Moment:
        accuracy = self.stretch_right / sum(self.counts[-1])
        kept = self.learner.memory_counts(len(self.feed.labels.known))
        moment = Moment(
            step=self.step,
            samples=self.samples,
            boundary=False,
            anytime=True,
            seen=len(self.learner.seen),
            accuracy=accuracy,
            cells=(accuracy,),
            memory=() if kept is None else tuple(kept.tolist()),
        )
        self.moments.append(moment)
        self.counts.append([])
        self.stretch_right = 0
        return moment

    def facts(self) -> StreamFacts:
        """Return what the feed was."""
        classes = len(self.feed.labels.known)
        full = [row + [0] * (classes - len(row)) for row in self.counts if row]
        return StreamFacts(
            name="live",
            samples=self.samples,
            steps=self.step,
            tasks=(tuple(range(classes)),),
            announced=False,
            class_names=tuple(map(str, self.feed.labels.known)),
            proportions=tuple(map(tuple, full)),
            description=f"live: {self.samples} images of {classes} classes in {self.step} batches",
        )

    def state_dict(self) -> dict[str, Any]:
        """Return everything; the feed itself cannot be kept and goes on by itself."""
        return super().state_dict() | {
            "labels": self.feed.labels.known,
            "counts": self.counts,
            "samples": self.samples,
            "stretch_right": self.stretch_right,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue; what the feed has given meanwhile gets its labels by the earlier index."""
        super().load_state_dict(state)
        names = self.feed.labels.known
        self.feed.labels = LabelIndex(state["labels"])
        self.waiting = [
            Batch(one.x, torch.from_numpy(self.feed.labels.encode([names[i] for i in one.y])))
            for one in self.waiting
        ]
        self.counts, self.samples = state["counts"], state["samples"]
        self.stretch_right = state["stretch_right"]


def live_config(**values: Any) -> RunConfig:
    """Return the config of a live run from flat names, as `RunConfig.of` takes them."""
    return RunConfig.of(**(values | {"dataset": "feed", "stream": "live"}))


def prepare_live(
    config: RunConfig, execution: Execution, feed: Iterable[tuple[Any, Any]]
) -> LiveSession:
    """Return a session on a feed whose first batch has come."""
    return LiveSession(config, execution, LiveStream(feed))
