"""Session: a learner on its way through a stream, with all that a checkpoint must hold."""

import dataclasses
import sys
import time
from collections.abc import Iterator
from typing import Any

from sterad.devices import synchronize
from sterad.errors import SteradError
from sterad.evaluation.evaluate import choose_sphere_classes, evaluate, sphere_points
from sterad.evaluation.metrics import evaluation_steps
from sterad.experiments.loss_watch import LossWatch
from sterad.methods import Learner
from sterad.results.record import Moment, SphereFrame, StreamFacts
from sterad.streams import Batch, Stream

STRETCHES = 100
"""Stretches of the stream in which classes are counted for the record."""


class Session:
    """What has been learned, answered and drawn so far."""

    data_digest: str = ""
    """Of the images that the stream is made of; a feed has none."""

    def __init__(self, learner: Learner, stream: Stream, anytime: int, test_then_train: bool):
        """Plan the moments of evaluation; nothing has been learned."""
        if test_then_train and not learner.answers_at_once:
            raise SteradError(
                "test_then_train asks before each batch and this method answers only after it has "
                "been consolidated: leave it off"
            )
        self.learner, self.stream, self.test_then_train = learner, stream, test_then_train
        samples = [stream.samples_after(step) for step in range(1, len(stream) + 1)]
        self.anytime_steps = frozenset(
            evaluation_steps(samples, 1 if learner.final_only else anytime)
        )
        self.boundary_steps = frozenset(stream.boundary_steps)
        asked = self.anytime_steps if learner.final_only else self.boundary_steps
        self.moments_planned = self.anytime_steps | asked
        self.axes = choose_sphere_classes(stream)
        self.frame_steps = self._frame_steps()
        self.watch: LossWatch | None = LossWatch(stream)
        self.begin()

    def begin(self) -> None:
        """Stand at the beginning, where nothing has been learned."""
        self.step = 0
        self.moments: list[Moment] = []
        self.frames: list[SphereFrame] = []
        self.confusion: tuple[tuple[int, ...], ...] = ()
        """Of the last evaluation."""
        self.asked = self.right = 0
        self.seconds = self.training_seconds = 0.0
        self.earlier_peak = self.earlier_consolidated = 0
        self.started = time.perf_counter()

    def _frame_steps(self) -> frozenset[int]:
        wanted = [len(self.stream) * share for share in (1 / 3, 2 / 3, 1)]
        planned = sorted(self.moments_planned)
        return frozenset(min(planned, key=lambda step: abs(step - point)) for point in wanted)

    @property
    def total_steps(self) -> int | None:
        """Batches of the whole stream; None where nobody knows."""
        return len(self.stream)

    @property
    def total_samples(self) -> int | None:
        """Images of the whole stream; None where nobody knows."""
        return self.stream.samples

    @property
    def evaluations(self) -> tuple[str, ...]:
        """Names of what is scored on its own."""
        return tuple(one.name for one in self.stream.evaluations())

    def facts(self) -> StreamFacts:
        """Return what the stream was."""
        return facts_of(self.stream)

    def batches(self) -> Iterator[Batch]:
        """Yield what is still to be learned."""
        for step in range(self.step, len(self.stream)):
            yield self.stream.batch(step)

    def finish(self) -> Moment | None:
        """Evaluate what is left to evaluate after the last batch: nothing, by the plan."""
        return None

    def learn(self, batch: Batch) -> Any:
        """Ask first if the protocol says so, then observe; return the loss."""
        if self.test_then_train:
            self._ask(batch)
        if self.watch is not None:
            self.watch.look(self.learner, self.step)
        device = self.learner.problem.execution.device
        synchronize(device)
        before = time.perf_counter()
        loss = self.learner.observe(batch)
        synchronize(device)
        self.training_seconds += time.perf_counter() - before
        self.step += 1
        if self.watch is not None:
            self.watch.note(self.learner, batch, self.step)
        if self.step in self.boundary_steps and (boundary := self.stream.boundary(self.step)):
            self.learner.boundary(boundary)
        return loss

    def _ask(self, batch: Batch) -> None:
        # Before the first batch nobody has an answer: those images count as asked and not as right.
        self.asked += len(batch)
        if len(self.learner.seen):
            scores, labels = self.learner.instant_scores(batch.x)
            self.right += int((labels[scores.argmax(dim=1)] == batch.y).sum())

    def evaluate_if_planned(self) -> Moment | None:
        """Evaluate where the plan says so."""
        if self.step not in self.moments_planned:
            return None
        samples = self.stream.samples_after(self.step)
        answers = evaluate(self.learner, self.stream, samples=samples)
        self.confusion = answers.confusion
        counts = self.learner.memory_counts(self.stream.dataset.classes)
        moment = Moment(
            step=self.step,
            samples=samples,
            boundary=self.step in self.boundary_steps,
            anytime=self.step in self.anytime_steps,
            seen=len(self.learner.seen),
            accuracy=answers.accuracy,
            cells=answers.cells,
            memory=() if counts is None else tuple(counts.tolist()),
        )
        self.moments.append(moment)
        if self.step in self.frame_steps:
            self._draw()
        return moment

    def _draw(self) -> None:
        drawn = sphere_points(self.learner, self.stream, self.axes) if self.axes else None
        if drawn is not None:
            labels, points = drawn
            self.frames.append(SphereFrame(self.step, tuple(labels), tuple(points)))

    @property
    def elapsed(self) -> float:
        """Return seconds of work, also those before a resume."""
        return self.seconds + time.perf_counter() - self.started

    @property
    def peak_memory_bytes(self) -> int:
        """Return the largest resident size, also of processes before a resume."""
        return max(self.earlier_peak, peak_memory_bytes())

    @property
    def consolidation_images(self) -> int:
        """Return images trained on in consolidations, also before a resume."""
        return self.earlier_consolidated + self.learner.consolidation_images

    def state_dict(self) -> dict[str, Any]:
        """Return everything, also the learner's state."""
        return {
            "learner": self.learner.state_dict(),
            "step": self.step,
            "moments": [dataclasses.asdict(moment) for moment in self.moments],
            "frames": [dataclasses.asdict(frame) for frame in self.frames],
            "confusion": self.confusion,
            "losses": [] if self.watch is None else self.watch.losses,
            "asked": self.asked,
            "right": self.right,
            "seconds": self.elapsed,
            "training_seconds": self.training_seconds,
            "peak_memory_bytes": self.peak_memory_bytes,
            "consolidation_images": self.consolidation_images,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict()` stood."""
        self.learner.load_state_dict(state["learner"])
        self.step, self.asked, self.right = state["step"], state["asked"], state["right"]
        self.moments = [Moment(**moment) for moment in state["moments"]]
        self.frames = [SphereFrame(**frame) for frame in state["frames"]]
        self.confusion = state.get("confusion", ())  # checkpoints of earlier versions have none
        if self.watch is not None:
            self.watch.losses = list(state.get("losses", ()))
        self.seconds, self.training_seconds = state["seconds"], state["training_seconds"]
        self.earlier_peak = state["peak_memory_bytes"]
        self.earlier_consolidated = state.get("consolidation_images", 0)
        self.started = time.perf_counter()


def peak_memory_bytes() -> int:
    """Return the largest resident size of this process; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def facts_of(stream: Stream) -> StreamFacts:
    """Return what a record says of a stream."""
    return StreamFacts(
        name=stream.name,
        samples=stream.samples,
        steps=len(stream),
        tasks=stream.tasks,
        announced=bool(stream.boundary_steps),
        class_names=stream.dataset.class_names,
        proportions=tuple(map(tuple, stream.proportions(STRETCHES).tolist())),
        digest=stream.digest,
        description=stream.describe(),
    )
