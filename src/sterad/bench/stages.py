"""Stages: which part of a step goes to views, memory, loss, optimizer, and which to the network."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from sterad.bench.interleaved import Timings, Turns, interleaved
from sterad.bench.subject import Scene
from sterad.engine.execution import Execution
from sterad.methods.base.replay import Replay
from sterad.methods.fixed_directions import FixedDirections
from sterad.streams import Batch


def stage_timings(scene: Scene, method: str, execution: Execution, turns: Turns) -> Timings:
    """Return the seconds of a whole step of a fixed-directions method and of its stages alone.

    Beside them, a memory that is larger than any of the paper's.
    """
    learner = scene.learner(method, execution)
    assert isinstance(learner, FixedDirections)
    batch = scene.batch(seed=1)
    joined = Batch.joined(learner.memory.sample(learner.config.memory_batch), batch)
    placed = learner.engine.to_device(joined.x)
    large = Scene(image_size=64, memory=10_000, encoder="flatten")
    many, some = large.after(100_000, execution), large.batch(seed=1)

    def memory(of: Replay, batch: Batch) -> None:
        of.retrieve(batch)
        of.remember(batch)

    acts: Mapping[str, Callable[[], object]] = {
        "step": scene.act(learner),
        "views": lambda: learner.views_of(placed),
        "memory": lambda: memory(learner, batch),
        "memory of 10,000 images of 64 pixels": lambda: memory(many, some),
        "checks": lambda: learner.admit(batch),
    }
    inside = Inside(learner)
    timings = interleaved(acts, turns)
    last = slice(-len(timings.seconds["step"]), None)
    watched = {"loss": inside.loss[last], "optimizer": inside.optimizer[last]}
    return Timings({**timings.seconds, **watched})


class Inside:
    """The seconds that the loss, there and back, and the optimizer take within each step.

    Alone they would start a backward pass of their own, and find other caches than a step leaves.
    """

    def __init__(self, learner: FixedDirections) -> None:
        """Stand between a learner and its objective, and around its optimizer."""
        self.objective: Callable[..., Tensor] = learner.objective
        self.loss: list[float] = []
        self.optimizer: list[float] = []
        self.began = self.spent = 0.0
        learner.engine.optimizer.register_step_pre_hook(self.sets_out)
        learner.engine.optimizer.register_step_post_hook(self.has_stepped)
        setattr(learner, "objective", self.watched)  # noqa: B010 - a method, for mypy not to be set

    def watched(self, z: Tensor, *rest: Any) -> Tensor:
        """Return the loss, and hear when its gradient sets out and when it reaches z."""
        before = time.perf_counter()
        loss = self.objective(z, *rest)
        self.spent = time.perf_counter() - before
        loss.register_hook(self.sets_out)
        z.register_hook(self.arrives)
        return loss

    def sets_out(self, *_: object) -> None:
        """Begin to time the way back, or a step of the optimizer."""
        self.began = time.perf_counter()

    def arrives(self, _: Tensor) -> None:
        """Add the way back to the way there."""
        self.loss.append(self.spent + time.perf_counter() - self.began)

    def has_stepped(self, *_: object) -> None:
        """Note how long the optimizer took."""
        self.optimizer.append(time.perf_counter() - self.began)
