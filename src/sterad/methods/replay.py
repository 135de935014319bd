"""Replay: the one base class, whose `observe` is the algorithm box of every replay paper.

Retrieve, then loss, then step, then remember: a method overrides one or two of these four words.
"""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers import CLASSIFIERS, Classifier
from sterad.encoders import Network, build_network, carry_over, grow
from sterad.errors import SteradError
from sterad.memory import Memory, Reservoir
from sterad.methods.learner import Learner, check_inputs
from sterad.methods.optimisers import OptimiserConfig, make_optimiser
from sterad.methods.problem import Problem
from sterad.seeds import generator
from sterad.streams import Batch
from sterad.views import RECIPES


@dataclass(frozen=True)
class ReplayConfig(OptimiserConfig):
    """The fields that every replay method has."""

    memory_batch: int = 64
    """Images retrieved from memory for each stream batch."""
    recipe: str = "full"
    """Augmentation: full (crop, flip, colour, grey), partial (shifted crop, flip) or none."""
    head: str = "linear"
    """What stands on the encoder: mlp, linear or none."""
    classifier: str = "head"
    """Who answers: the trained head, or nearest-mean of the features that the memory gives."""


class Replay(Learner):
    """A network, a memory and an optimiser around the four words."""

    Config = ReplayConfig
    config: ReplayConfig
    learns_alone: ClassVar[bool] = True
    """Whether a stream batch is learnt from while the memory is still empty."""
    instant: ClassVar[str] = "head"
    """What the classifier that needs no fitting is called."""

    def __init__(self, config: ReplayConfig, problem: Problem) -> None:
        """Build the network from the seed; the memory's columns come with the first batch."""
        super().__init__(config, problem)
        self.rng = {name: generator(problem.seed, name) for name in ("network", "views")}
        network = build_network(
            problem.encoder,
            problem.input_shape,
            problem.width,
            config.head,
            None if config.head == "none" else self.first_outputs(),
            self.rng["network"],
        )
        self.network: Network = network.to(problem.device)
        if self.memory_format is torch.channels_last:
            self.network.to(memory_format=self.memory_format)  # type: ignore[call-overload]
        self.optimiser = make_optimiser(config, self.network.parameters())
        self.recipe = RECIPES[config.recipe](flip=problem.flip)
        self.memory: Memory = self.make_memory()
        self.fitted: Classifier | None = None
        self.check_classifier()

    def check_classifier(self) -> None:
        """Refuse a classifier that this method does not know or cannot feed."""
        name = self.config.classifier
        if name not in (self.instant, *CLASSIFIERS):
            known = ", ".join((self.instant, *CLASSIFIERS))
            raise SteradError(f"unknown classifier {name!r} for this method: known are {known}")
        if name in CLASSIFIERS and not self.memory.capacity:
            raise SteradError(
                f"the classifier {name!r} is fitted to what the memory holds and this method keeps "
                f"nothing: use {self.instant!r}"
            )

    @property
    def memory_format(self) -> torch.memory_format:
        """Where the channel of a pixel lies in memory."""
        images = self.problem.channels_last and len(self.problem.input_shape) == 3
        return torch.channels_last if images else torch.contiguous_format

    def first_outputs(self) -> int:
        """Return the head's width before the first image: one output a declared class."""
        return self.problem.classes or 1

    def make_memory(self) -> Memory:
        """Return an empty memory."""
        return Reservoir(self.problem.memory, generator(self.problem.seed, "memory"))

    def observe(self, batch: Batch) -> Tensor | None:
        """Retrieve, then loss, then step, then remember."""
        self.admit(batch)
        retrieved = self.retrieve(batch)
        loss = None
        if self.learns_alone or len(retrieved):
            loss = self.loss(retrieved, batch)
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
        """Move the weights against the gradient of `loss`."""
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()

    def remember(self, batch: Batch) -> None:
        """Offer the raw stream batch to the memory."""
        self.memory.update(batch)

    def admit(self, batch: Batch) -> None:
        """Check a batch at the door and widen the head for labels that exceed it."""
        super().admit(batch)
        needed = int(self.seen[-1]) + 1
        if needed > self.network.outputs:
            self.widen(needed)

    def widen(self, outputs: int) -> None:
        """Grow the head to `outputs`; old rows and their optimiser state stay as they are."""
        carry_over(self.optimiser, grow(self.network.head, outputs, self.rng["network"]))

    def place(self, x: Tensor) -> Tensor:
        """Bring images to the network's device and memory format."""
        if x.dim() == 4:
            return x.to(self.problem.device, memory_format=self.memory_format)
        return x.to(self.problem.device)

    def view(self, x: Tensor) -> Tensor:
        """Return one random view of placed images."""
        return self.place(self.recipe(x, self.rng["views"]))

    def forward(self, x: Tensor, unit: bool = False) -> Tensor:
        """Push placed images through the network in training and count them."""
        self.images += len(x)
        out: Tensor = self.network(x, unit=unit)
        return out

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Switch to evaluation mode without graphs, and back to training afterwards."""
        self.network.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self.network.train()

    def decide(self, p: Tensor) -> Tensor:
        """Return scores of the seen classes from raw head outputs p: (n, outputs)."""
        return p[:, self.seen]

    def instant_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the weights as they are: answers are among the seen classes only."""
        check_inputs(x, self.problem)
        with self.answering():
            return self.decide(self.network(self.place(x)).cpu()), self.seen

    def remembered(self) -> list[tuple[Tensor, Tensor]]:
        """Return raw features and labels of everything in memory, in storage order."""
        if len(self.memory) == 0:
            raise SteradError(
                "nothing is remembered yet: observe a batch before asking for answers"
            )
        with self.answering():
            return [
                (self.network.features(self.place(kept.x)), kept.y.to(self.problem.device))
                for kept in self.memory.everything()
            ]

    def consolidate(self) -> None:
        """Fit the classifier to unit-length features of the memory, if it is one that is fitted."""
        if self.config.classifier in CLASSIFIERS:
            pairs = ((F.normalize(h), y) for h, y in self.remembered())
            self.fitted = CLASSIFIERS[self.config.classifier].fit(pairs)

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the fitted classifier, or of the weights as they are."""
        if self.config.classifier == self.instant:
            return self.instant_scores(x)
        if self.fitted is None:
            raise SteradError("no classifier is fitted yet: consolidate before asking for answers")
        check_inputs(x, self.problem)
        with self.answering():
            h = self.network.features(self.place(x), unit=True)
            return self.fitted.scores(h).cpu(), self.fitted.labels.cpu()

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return how many images of each class are kept."""
        return self.memory.class_counts(classes) if self.memory.capacity else None

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimiser, memory and the states of all generators."""
        return super().state_dict() | {
            "outputs": self.network.outputs,
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "memory": self.memory.state_dict(),
            "rng": {name: rng.get_state() for name, rng in self.rng.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state, whose head may have grown meanwhile."""
        super().load_state_dict(state)
        if state["outputs"] > self.network.outputs:
            self.widen(state["outputs"])
        self.network.load_state_dict(state["network"])
        # torch shares these tensors with the state that it loads; the state stays the caller's.
        self.optimiser.load_state_dict(deepcopy(state["optimiser"]))
        self.memory.load_state_dict(state["memory"])
        for name, rng in self.rng.items():
            rng.set_state(state["rng"][name])
