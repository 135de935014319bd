"""Replay: the one base class, whose `observe` is the algorithm box of every replay paper.

Retrieve, then loss, then step, then remember: a method overrides one or two of these four words.
"""

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from sterad.encoders import Network, build_network
from sterad.engine import Engine
from sterad.errors import SteradError
from sterad.memory import Memory, Reservoir
from sterad.methods.answering import Answering
from sterad.methods.boundaries import BoundaryConfig, TaskCounter
from sterad.methods.learner import check_batch
from sterad.methods.optimizers import OptimizerConfig, make_optimizer
from sterad.methods.problem import Problem
from sterad.methods.teacher import Teacher, TeacherConfig, distillation
from sterad.seeds import generator
from sterad.streams import Batch, Boundary
from sterad.validation import BatchSize, Count, Views
from sterad.views import AUGMENTATIONS


@dataclass(frozen=True)
class ReplayConfig(TeacherConfig, OptimizerConfig):
    """The fields that every replay method has."""

    memory_batch: BatchSize = 64
    """Number of images retrieved from memory for each stream batch."""
    memory_iterations: Count = 1
    """Training steps per stream batch, each with newly retrieved images."""
    augmentation: str = "full"
    """full (crop, flip, color, gray), partial (shifted crop, flip) or none."""
    views: Views = 1
    """Number of random views per image; the image itself is added if there are 0 or several."""
    head: str = "linear"
    """Head on the encoder: mlp, linear, cosine or none."""
    classifier: str = "head"
    """Classifier: the trained head, or one fitted to the features of the memory."""


class Replay(Answering):
    """A network, a memory and an optimizer around the four words."""

    Config = ReplayConfig
    config: ReplayConfig
    trains_without_memory: ClassVar[bool] = True
    """Whether a stream batch is learned from while the memory is still empty."""
    includes_raw: ClassVar[bool] = False
    """Whether the images themselves are shown beside a single view too, not only beside several."""
    single_view: ClassVar[bool] = False
    """Whether the loss is made for one random view of each image, so that `views` must be 1."""

    def __init__(self, config: ReplayConfig, problem: Problem) -> None:
        """Build the network from the seed; the memory's columns come with the first batch."""
        super().__init__(config, problem)
        self.check_numbers()
        self.rng = {name: generator(problem.seed, name) for name in ("network", "views")}
        self.engine = self.make_engine()
        self.augmentation = AUGMENTATIONS[config.augmentation](flip=problem.flip)
        self.memory: Memory = self.make_memory()
        self.check_classifier()
        ema = config.teacher == "ema"
        self.teacher = Teacher(self.network, config.teacher_momentum) if ema else None
        wants = isinstance(config, BoundaryConfig)
        self.tasks = TaskCounter(config, problem.announced) if wants else None  # type: ignore[arg-type]

    def check_numbers(self) -> None:
        """Refuse numbers that no method can have."""
        config = self.config
        if self.single_view and config.views != 1:
            raise SteradError(f"views {config.views} for a loss that takes one view: leave views=1")
        for field in fields(TeacherConfig):
            given = getattr(config, field.name)
            if config.teacher == "none" and given != field.default:
                raise SteradError(f"{field.name}={given} without a teacher: set teacher=ema")

    @property
    def classifier(self) -> str:
        """Name of the classifier that answers."""
        return self.config.classifier

    def first_outputs(self) -> int:
        """Return the head's width before the first image: one output a declared class."""
        return self.problem.classes or 1

    def make_engine(self) -> Engine:
        """Return an engine with a fresh network and optimizer."""
        problem = self.problem
        return Engine(self.make_network(), problem.width, problem.execution, self.make_optimizer)

    def make_network(self) -> Network:
        """Return a network drawn from the seed."""
        outputs = None if self.config.head == "none" else self.first_outputs()
        problem, rng = self.problem, self.rng["network"]
        return build_network(
            problem.encoder, problem.input_shape, problem.width, self.config.head, outputs, rng
        )

    def make_optimizer(self, weights: list[Parameter], scaled: bool) -> Optimizer:
        """Return the optimizer that the config names."""
        return make_optimizer(self.config, weights, scaled)

    def make_memory(self) -> Memory:
        """Return an empty memory."""
        return Reservoir(self.problem.memory, generator(self.problem.seed, "memory"))

    def observe(self, batch: Batch) -> Tensor | None:
        """Retrieve, then loss, then step, then remember."""
        self.admit(batch)
        loss = None
        for _ in range(self.config.memory_iterations):
            retrieved = self.retrieve(batch)
            if self.trains_without_memory or len(retrieved):
                loss = self.loss(retrieved, batch)
                if self.teacher is not None:
                    loss = loss + self.distillation_loss(self.teacher, retrieved, batch)
                self.step(loss)
        self.remember(batch)
        return None if loss is None else loss.detach()

    def retrieve(self, batch: Batch) -> Batch:
        """Return what is replayed beside `batch`; the memory does not hold `batch` yet."""
        return self.memory.sample(self.config.memory_batch)

    @abstractmethod
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss of the retrieved and the stream batch."""

    def step(self, loss: Tensor) -> None:
        """Move the weights against the gradient of `loss`, and let the teacher follow."""
        self.engine.drop_gradients()
        self.engine.backward(loss)
        self.descend()

    def descend(self) -> None:
        """Take a step along the gradients that were added up, and let the teacher follow."""
        self.engine.step(self.config.clip)
        if self.teacher is not None:
            self.teacher.follow(self.network)

    def remember(self, batch: Batch) -> None:
        """Offer the raw stream batch to the memory."""
        self.memory.update(batch)

    def admit(self, batch: Batch) -> None:
        """Check a batch at the door, notice a new task, widen the head for labels beyond it."""
        check_batch(batch, self.problem)
        if self.tasks is not None and self.tasks.noticed(batch.y):
            self.end_task()
        if self.see(batch.y) and self.head_classifier is not None:
            needed = max(self.seen.tolist()) + 1
            if needed > self.network.outputs:
                self.widen(needed)

    def boundary(self, event: Boundary) -> None:
        """Hear the end of a task, if this method listens."""
        if self.tasks is not None and self.tasks.announced():
            self.end_task()

    def end_task(self) -> None:
        """Do what a method does when a task has ended; `seen` holds the classes up to it."""

    def widen(self, outputs: int) -> None:
        """Grow the head to `outputs`; old rows and their optimizer state stay as they are."""
        self.engine.widen(outputs, self.rng["network"])
        if self.teacher is not None:
            self.teacher.widen(self.network)

    def view(self, x: Tensor) -> Tensor:
        """Return one random view of images on the device."""
        return self.engine.to_device(self.augmentation(x, self.rng["views"]))

    def views_of(self, x: Tensor) -> list[Tensor]:
        """Return the views of images and, last, the images; a single view may go alone.

        Inputs that the augmentation leaves as they are, vectors say, are shown once.
        """
        if not self.augmentation.changes(x):
            return [x]
        views = [self.view(x) for _ in range(self.config.views)]
        return views if len(views) == 1 and not self.includes_raw else [*views, x]

    def forward(self, x: Tensor, unit: bool = False) -> Tensor:
        """Push images on the device through the network in training and count them."""
        self.images += len(x)
        out: Tensor = self.network(x, unit=unit)
        return out

    def outputs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return raw outputs of everything shown of a batch, in one pass, and their labels."""
        x, labels = self.stacked_views(batch)
        return self.forward(x), labels

    def outputs_of(self, *batches: Batch) -> list[tuple[Tensor, Tensor]]:
        """Return the same of several batches, a pass each: they can go side by side."""
        shown, labels = zip(*map(self.stacked_views, batches), strict=True)
        self.images += sum(map(len, shown))
        parts = self.engine.forward(shown).split([*map(len, shown)])
        return list(zip(parts, labels, strict=True))

    def stacked_views(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return everything that is shown of a batch, one view below the other, and its labels."""
        shown = self.views_of(self.engine.to_device(batch.x))
        if len(shown) == 1:  # nothing to join: spare the copies
            return shown[0], self.engine.to_device(batch.y)
        return torch.cat(shown), self.engine.to_device(batch.y.repeat(len(shown)))

    def representations(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return unit-length outputs of everything shown, a pass each, and their labels.

        Each pass is normalized by its own batch, so they can go side by side. The labels stay on
        the host, where a loss can look which classes there are without waiting for a device.
        """
        shown = self.views_of(self.engine.to_device(batch.x))
        self.images += sum(map(len, shown))
        z = self.engine.forward(shown, unit=True)
        return z, batch.y.repeat(len(shown))

    def distillation_loss(self, teacher: Teacher, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the distance to the teacher on a view of both batches and on both as they are."""
        parts = (retrieved, batch) if len(retrieved) else (batch,)
        x = torch.cat([self.engine.to_device(part.x) for part in parts])
        view = self.view(x)
        taught = teacher(view)
        self.images += len(view)
        distances = [self.distance(taught, self.forward(shown)) for shown in (view, x)]
        return self.config.teacher_weight * (distances[0] + distances[1]) / 2

    def distance(self, taught: Tensor, learned: Tensor) -> Tensor:
        """Return how far raw outputs are from the teacher's: (n, outputs) both."""
        return distillation(taught, learned, self.config.teacher_temperature)

    def answering_network(self) -> Network:
        """Return the student, its teacher or their average, as configured."""
        if self.teacher is None or self.config.predict_with == "student":
            return self.network
        if self.config.predict_with == "teacher":
            return self.teacher.network
        return self.teacher.averaged(self.network)

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimizer, memory, teacher, tasks and the states of all generators."""
        return (
            super().state_dict()
            | self.engine.state_dict()
            | {
                "memory": self.memory.state_dict(),
                "rng": {name: rng.get_state() for name, rng in self.rng.items()},
                "teacher": None if self.teacher is None else self.teacher.network.state_dict(),
                "tasks": None if self.tasks is None else self.tasks.state_dict(),
            }
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state, whose head may have grown meanwhile."""
        super().load_state_dict(state)
        if state["outputs"] > self.network.outputs:
            self.widen(state["outputs"])
        self.engine.load_state_dict(state)
        self.memory.load_state_dict(state["memory"])
        for name, rng in self.rng.items():
            rng.set_state(state["rng"][name])
        if self.teacher is not None:
            self.teacher.network.load_state_dict(state["teacher"])
        if self.tasks is not None:
            self.tasks.load_state_dict(state["tasks"])
