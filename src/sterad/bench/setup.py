"""The setup of a benchmark: image size, classes, memory, and learners in the middle of a stream."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from sterad.engine.execution import Execution
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.base.from_scratch import FromScratch
from sterad.methods.base.replay import Replay
from sterad.streams import Batch, Boundary

STREAM_STEPS = 10_000
"""Steps of the simulated run, as many as the paper's longest: optimizations that pay off only in
long runs are on."""
STORED_IMAGES = 200
"""Images in memory before timing starts, more than any method retrieves."""

CURRENT_IMAGES = 30
"""Images of the second task in memory, as many as any method replays of its current task."""


@dataclass(frozen=True)
class BenchSetup:
    """Values that all measurements of one benchmark share."""

    image_size: int = 32
    channels: int = 3
    classes: int = 100
    memory: int = 1000
    width: int = 20
    encoder: str = "resnet18"
    batch_size: int = 10
    second_task: bool = False
    """Whether the steps follow an announced end of a task, as most steps of a stream do."""

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Return the shape of one image."""
        return self.channels, self.image_size, self.image_size

    def batch(self, images: int | None = None, seed: int = 0) -> Batch:
        """Return random images with random labels."""
        rng, count = torch.Generator().manual_seed(seed), images or self.batch_size
        pixels = torch.randint(0, 256, (count, *self.input_shape), generator=rng)
        return Batch(pixels / 255, torch.randint(0, self.classes, (count,), generator=rng))

    def resolve(self, execution: Execution) -> Execution:
        """Return the execution with its open fields chosen for a long run."""
        return execution.resolve(self.input_shape, self.width, STREAM_STEPS)

    def learner(self, method: str, execution: Execution, **fields: Any) -> Replay:
        """Return a learner that has stored one large batch; fields: those of its Config."""
        problem = Problem(
            input_shape=self.input_shape,
            classes=self.classes,
            memory=self.memory,
            flip=True,
            encoder=self.encoder,
            width=self.width,
            announced=self.second_task,
            execution=execution,
        )
        learner = build_learner(method, METHODS[method].Config(**fields), problem, STREAM_STEPS)
        assert isinstance(learner, Replay)
        learner.problem.execution.apply()
        learner.observe(self.batch(STORED_IMAGES))
        if self.second_task:
            learner.boundary(Boundary(task=0, step=1))
            learner.observe(self.batch(CURRENT_IMAGES, seed=2))
        return learner

    def learner_after(self, samples: int, execution: Execution) -> Replay:
        """Return an ER learner in its state after `samples` images of a stream."""
        learner = self.learner("er", execution)
        if samples:
            state, stored = learner.state_dict(), min(samples, self.memory)
            rng = torch.Generator().manual_seed(0)
            x = torch.randint(0, 256, (stored, *self.input_shape), dtype=torch.uint8, generator=rng)
            y = torch.randint(0, self.classes, (stored,), generator=rng)
            state["seen"] = torch.arange(self.classes)
            state["memory"] |= {"seen": samples, "columns": {"x": x, "y": y}}
            state["images"] = samples // self.batch_size * (self.batch_size + 64)
            learner.load_state_dict(state)
        return learner

    def step_function(self, learner: Replay) -> Callable[[], object]:
        """Return a function that takes one training step.

        Methods that train from scratch on the memory take a step of that training.
        """
        if isinstance(learner, FromScratch):
            slots = torch.arange(learner.config.memory_batch)
            return lambda: learner.learn(slots)
        batch = self.batch(seed=1)
        return lambda: learner.observe(batch)
