"""Subject: a method in the middle of a stream, with a memory that has something to replay."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from sterad.engine.execution import Execution
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.methods.base.from_scratch import FromScratch
from sterad.methods.base.replay import Replay
from sterad.streams import Batch

STEPS = 10_000
"""Steps of the run that a subject is in the middle of, as many as the paper's longest has: what
pays in the long run is on."""
FILLED = 200
"""Images that the memory holds before anything is timed, more than any method asks for."""


@dataclass(frozen=True)
class Scene:
    """What all subjects of one benchmark share."""

    image_size: int = 32
    channels: int = 3
    classes: int = 100
    memory: int = 1000
    width: int = 20
    encoder: str = "resnet18"
    batch_size: int = 10

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Return the shape of one image."""
        return self.channels, self.image_size, self.image_size

    def batch(self, images: int | None = None, seed: int = 0) -> Batch:
        """Return random images with labels among all classes."""
        rng, count = torch.Generator().manual_seed(seed), images or self.batch_size
        bytes_ = torch.randint(0, 256, (count, *self.input_shape), generator=rng)
        return Batch(bytes_ / 255, torch.randint(0, self.classes, (count,), generator=rng))

    def settled(self, execution: Execution) -> Execution:
        """Return the execution with all that suits a long run of this scene."""
        return execution.settled(self.input_shape, self.width, STEPS)

    def learner(self, method: str, execution: Execution) -> Learner:
        """Return a method that has met one large batch."""
        problem = Problem(
            input_shape=self.input_shape,
            classes=self.classes,
            memory=self.memory,
            flip=True,
            encoder=self.encoder,
            width=self.width,
            execution=execution,
        )
        learner = build_learner(method, METHODS[method].Config(), problem, STEPS)
        learner.problem.execution.apply()
        learner.observe(self.batch(FILLED))
        return learner

    def after(self, samples: int, execution: Execution) -> Replay:
        """Return ER as it is after so many images, of which the memory has its share."""
        learner = self.learner("er", execution)
        assert isinstance(learner, Replay)
        state, kept = learner.state_dict(), min(samples, self.memory)
        if samples:
            rng = torch.Generator().manual_seed(0)
            x = torch.randint(0, 256, (kept, *self.input_shape), dtype=torch.uint8, generator=rng)
            y = torch.randint(0, self.classes, (kept,), generator=rng)
            state["memory"] |= {"seen": samples, "columns": {"x": x, "y": y}}
            state["images"] = samples // self.batch_size * (self.batch_size + 64)
            learner.load_state_dict(state)
        return learner

    def act(self, learner: Learner) -> Callable[[], object]:
        """Return what is timed: a step, on the memory alone where a method trains to answer."""
        if isinstance(learner, FromScratch):
            slots = torch.arange(learner.config.memory_batch)
            return lambda: learner.learn(slots)
        batch = self.batch(seed=1)
        return lambda: learner.observe(batch)
