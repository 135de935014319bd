"""Session: a learner on a stream, with everything that a checkpoint must hold."""

import dataclasses
import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from sterad.devices import synchronize
from sterad.errors import SteradError
from sterad.evaluation.evaluate import choose_sphere_classes, evaluate, sphere_points
from sterad.evaluation.metrics import evaluation_steps
from sterad.evaluation.other_classifiers import ON_TRAINING_IMAGES, OtherClassifiers, check_names
from sterad.methods import Learner
from sterad.methods.base.replay import Replay
from sterad.results.record import Moment, SphereFrame, StreamFacts
from sterad.saved_state import check_count, check_like
from sterad.streams import Batch, Stream

PROPORTION_BINS = 100
"""Equal parts of the stream in which the record counts classes."""
MAX_RECORDED_LOSSES = 200
"""Maximum number of steps, evenly spaced, at which losses of new and old classes are recorded."""


class Session:
    """The progress of one run: step, evaluations, counts and times."""

    data_digest: str = ""
    """Of the images of the dataset; a feed has none."""

    def __init__(
        self,
        learner: Learner,
        stream: Stream,
        anytime: int,
        test_then_train: bool,
        also_evaluate: Sequence[str] = (),
    ) -> None:
        """Plan the steps at which to evaluate; `also_evaluate` names other classifiers."""
        if test_then_train and learner.trains != "on-stream":
            raise SteradError(
                "test_then_train predicts before each batch and this method predicts only after "
                "consolidate(): leave it off"
            )
        check_names(also_evaluate, learner)
        self.learner, self.stream, self.test_then_train = learner, stream, test_then_train
        self.also_evaluate = tuple(also_evaluate)
        self.total_steps: int | None = len(stream)
        self.total_samples: int | None = stream.samples
        self.evaluations = tuple(evaluation.name for evaluation in stream.evaluations())
        """Names of the sets of test images that are evaluated separately."""
        samples = [stream.samples_after(step) for step in range(1, len(stream) + 1)]
        self.anytime_steps = frozenset(
            evaluation_steps(samples, 1 if learner.trains == "at-end" else anytime)
        )
        self.boundary_steps = frozenset(stream.boundary_steps)
        self.evaluation_steps = self.anytime_steps
        if learner.trains != "at-end":
            self.evaluation_steps |= self.boundary_steps
        self.axes = choose_sphere_classes(stream)
        planned = sorted(self.evaluation_steps)
        thirds = [len(stream) * fraction for fraction in (1 / 3, 2 / 3, 1)]
        self.frame_steps = {min(planned, key=lambda step: abs(step - third)) for third in thirds}
        self.loss_recorder = LossRecorder(stream.tasks, len(stream))
        self.begin()

    def begin(self) -> None:
        """Set the progress to the beginning of the stream."""
        self.step = 0
        self.moments: list[Moment] = []
        self.other_moments: dict[str, list[Moment]] = {}
        """Evaluations of the classifiers in `also_evaluate`."""
        self.frames: list[SphereFrame] = []
        self.confusion: tuple[tuple[int, ...], ...] = ()
        """Of the last evaluation."""
        self.tested = self.correct = 0
        """Images predicted just before they are learned from, and those predicted correctly."""
        self.seconds = self.training_seconds = 0.0
        self.earlier_peak = 0
        self.started = time.perf_counter()

    def facts(self) -> StreamFacts:
        """Return the description of the stream for the record."""
        return facts_of(self.stream)

    def batches(self) -> Iterator[Batch]:
        """Yield the remaining batches."""
        for step in range(self.step, len(self.stream)):
            yield self.stream.batch(step)

    def finish(self) -> Moment | None:
        """Evaluate what remains after the last batch: nothing on a stream with a plan."""
        return None

    def learn(self, batch: Batch) -> Any:
        """Predict first if the settings say so, then observe; return the loss."""
        if self.test_then_train:
            self._test(batch)
        self.loss_recorder.prepare(self.learner, self.step)
        device = self.learner.problem.execution.device
        synchronize(device)
        started = time.perf_counter()
        loss = self.learner.observe(batch)
        synchronize(device)
        self.training_seconds += time.perf_counter() - started
        self.step += 1
        self.loss_recorder.record(self.learner, batch, self.step)
        if self.step in self.boundary_steps and (boundary := self.stream.boundary(self.step)):
            self.learner.boundary(boundary)
        return loss

    def _test(self, batch: Batch) -> None:
        # Before the first batch there is no prediction: those images count as wrong.
        self.tested += len(batch)
        if len(self.learner.seen):
            scores, labels = self.learner.immediate_scores(batch.x)
            self.correct += int((labels[scores.argmax(dim=1)] == batch.y).sum())

    def evaluate_if_planned(self) -> Moment | None:
        """Evaluate if the plan has an evaluation at this step."""
        if self.step not in self.evaluation_steps:
            return None
        samples = self.stream.samples_after(self.step)
        result = evaluate(self.learner, self.stream, samples=samples)
        self.confusion = result.confusion
        counts = self.learner.memory_counts(self.stream.dataset.classes)
        moment = Moment(
            step=self.step,
            samples=samples,
            boundary=self.step in self.boundary_steps,
            anytime=self.step in self.anytime_steps,
            seen=len(self.learner.seen),
            accuracy=result.accuracy,
            cells=result.cells,
            memory=() if counts is None else tuple(counts.tolist()),
        )
        self.moments.append(moment)
        self._evaluate_others(moment)
        if self.step in self.frame_steps and self.axes:
            points = sphere_points(self.learner, self.stream, self.axes)
            if points is not None:
                self.frames.append(SphereFrame(self.step, tuple(points[0]), tuple(points[1])))
        return moment

    def _evaluate_others(self, moment: Moment) -> None:
        """Evaluate the other classifiers; those of all training images only at the end."""
        if not isinstance(self.learner, Replay):
            return
        others = OtherClassifiers(self.learner, self.stream)
        is_last = self.step == self.total_steps
        for name in self.also_evaluate:
            if is_last or not name.startswith(ON_TRAINING_IMAGES):
                result = others.evaluate(name, moment.samples)
                values = {"accuracy": result.accuracy, "cells": result.cells, "memory": ()}
                one = dataclasses.replace(moment, **values)  # type: ignore[arg-type]
                self.other_moments.setdefault(name, []).append(one)

    @property
    def elapsed(self) -> float:
        """Seconds of work, including those before a resume."""
        return self.seconds + time.perf_counter() - self.started

    @property
    def peak_memory_bytes(self) -> int:
        """Largest resident size, including that of processes before a resume."""
        return max(self.earlier_peak, peak_memory_bytes())

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, with that of the learner."""
        return {
            "learner": self.learner.state_dict(),
            "step": self.step,
            "moments": [dataclasses.asdict(moment) for moment in self.moments],
            "other_moments": {
                name: [dataclasses.asdict(moment) for moment in moments]
                for name, moments in self.other_moments.items()
            },
            "frames": [dataclasses.asdict(frame) for frame in self.frames],
            "confusion": self.confusion,
            "losses": self.loss_recorder.losses,
            "tested": self.tested,
            "correct": self.correct,
            "seconds": self.elapsed,
            "training_seconds": self.training_seconds,
            "peak_memory_bytes": self.peak_memory_bytes,
            "consolidation_images": self.learner.consolidation_images,
            "consolidation_passes": self.learner.consolidation_passes.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        for name in ("step", "tested", "correct", "consolidation_images", "peak_memory_bytes"):
            check_count(state[name], name)
        if self.total_steps is not None and state["step"] > self.total_steps:
            raise ValueError(f"step {state['step']} is after the end of the stream")
        for name in ("seconds", "training_seconds"):
            check_like(state[name], 0.0, name)
        self.learner.load_state_dict(state["learner"])
        self.step, self.tested, self.correct = state["step"], state["tested"], state["correct"]
        self.moments = [Moment(**moment) for moment in state["moments"]]
        self.other_moments = {
            name: [Moment(**moment) for moment in moments]
            for name, moments in state.get("other_moments", {}).items()
        }
        self.frames = [SphereFrame(**frame) for frame in state["frames"]]
        self.confusion = state["confusion"]
        self.loss_recorder.losses = list(state["losses"])
        self.seconds, self.training_seconds = state["seconds"], state["training_seconds"]
        self.earlier_peak = state["peak_memory_bytes"]
        self.learner.consolidation_images = state["consolidation_images"]
        self.learner.consolidation_passes.load_state_dict(state.get("consolidation_passes"))
        self.started = time.perf_counter()


class LossRecorder:
    """Records losses of new and old classes at every k-th step: the paper's figure 5.

    Streams in which a class belongs to two tasks have no old classes, and nothing is recorded.
    """

    def __init__(self, tasks: Sequence[Sequence[int]], steps: int) -> None:
        """Map each class to its task."""
        pairs = [(label, task) for task, labels in enumerate(tasks) for label in labels]
        self.task_of = dict(pairs) if len(dict(pairs)) == len(pairs) else {}
        self.interval = -(-steps // MAX_RECORDED_LOSSES)
        self.losses: list[tuple[int, float, float]] = []
        """Steps with the mean losses of new and of old classes."""

    def prepare(self, learner: Learner, step: int) -> None:
        """Make the learner keep the losses of the next step, if that is recorded."""
        is_recorded = bool(self.task_of) and step % self.interval == 0
        learner.sample_losses = [] if is_recorded else None

    def record(self, learner: Learner, batch: Batch, step: int) -> None:
        """Record the mean losses of a step that had both new and old classes.

        Old classes belong to tasks before the one with most images in the batch.
        """
        if not learner.sample_losses:
            return
        tasks = [self.task_of[label] for label in batch.y.tolist()]
        current = max(set(tasks), key=lambda task: (tasks.count(task), task))
        groups: tuple[list[float], list[float]] = ([], [])  # of new and of old classes
        losses, labels = learner.sample_losses[-1]
        for loss, label in zip(losses.tolist(), labels.tolist(), strict=True):
            groups[self.task_of[label] < current].append(loss)
        if all(groups):
            new, old = (math.fsum(group) / len(group) for group in groups)
            if math.isfinite(new) and math.isfinite(old):
                self.losses.append((step, new, old))


def peak_memory_bytes() -> int:
    """Return the largest resident size of this process; 0 where the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def facts_of(stream: Stream) -> StreamFacts:
    """Return the description of a stream for a record."""
    return StreamFacts(
        name=stream.name,
        samples=stream.samples,
        steps=len(stream),
        tasks=stream.tasks,
        announced=bool(stream.boundary_steps),
        class_names=stream.dataset.class_names,
        proportions=tuple(map(tuple, stream.proportions(PROPORTION_BINS).tolist())),
        digest=stream.digest,
        description=stream.describe(),
    )
