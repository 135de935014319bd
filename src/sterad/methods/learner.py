"""Learner: the protocol of every method. It observes a batch once, and later it answers."""

from abc import ABC, abstractmethod
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.problem import Problem
from sterad.registry import Registry
from sterad.streams import Batch, Boundary
from sterad.validation import check_fields

PIECE = 500
"""Images asked about at a time, where there are many: small enough for any memory."""


class Learner(ABC):
    """A method at work. All of its state, and nothing else, is in `state_dict()`."""

    Config: ClassVar[type[Any]]
    """The frozen dataclass of the method's own fields."""
    final_only: ClassVar[bool] = False
    """Whether answers are worth their price at the end of the stream only."""
    answers_at_once: ClassVar[bool] = True
    """Whether `instant_scores` can be asked right after a batch, without a consolidation."""
    records_sample_losses: bool = False
    """Whether the next step keeps the losses of single rows; it does not change what is learned."""
    sample_losses: tuple[Tensor, Tensor] | None = None
    """Losses (n,) and labels (n,) of the rows of the last recorded step, if the method has them."""

    def __init__(self, config: Any, problem: Problem) -> None:
        """Keep what was chosen; no class has been seen, no image shown to the network."""
        check_fields(config)
        self.config = config
        self.problem = problem
        self.seen = torch.zeros(0, dtype=torch.int64)
        """Labels seen so far, ascending."""
        self.images = 0
        """Images pushed through the network in training, all views counted."""
        self.consolidation_images = 0
        """Images pushed through networks in the trainings of `consolidate()`, by this object alone:
        not in the state, as answering does not change what is learned."""

    @abstractmethod
    def observe(self, batch: Batch) -> Tensor | None:
        """Learn from a batch, the only chance; return its loss, or None if nothing was learned."""

    def boundary(self, event: Boundary) -> None:  # noqa: B027 - an event that may never matter
        """Hear that the stream announces the end of a task. It may never come."""

    @abstractmethod
    def consolidate(self) -> None:
        """Get ready to answer: fit the classifier to what is remembered now."""

    @abstractmethod
    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (n, k) scores as consolidated and the k labels of the columns."""

    @abstractmethod
    def instant_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the weights as they are, by head or direction, with nothing refitted."""

    def predict(self, x: Tensor) -> Tensor:
        """Return the label of each image of x: (n, ...) as consolidated."""
        scores, labels = self.scores(x)
        return labels[scores.argmax(dim=1)]

    def on_sphere(self, x: Tensor) -> Tensor | None:
        """Return unit representations around the standard basis, if the method has any."""
        return None

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return how many images of each class are kept, or None without a memory."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return everything as values that `torch.load(weights_only=True)` admits."""
        return {"seen": self.seen, "images": self.images}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()` of an equal config and problem, bit for bit."""
        self.seen = state["seen"]
        self.images = state["images"]

    def admit(self, batch: Batch) -> None:
        """Check a batch at the door and count its classes as seen."""
        check_batch(batch, self.problem)
        self.see(batch.y)

    def see(self, labels: Tensor) -> bool:
        """Count the classes of `labels` as seen; return whether one of them is new."""
        known = set(self.seen.tolist())
        new = set(labels.tolist()) - known
        if new:
            self.seen = torch.tensor(sorted(known | new))
        return bool(new)


def build_learner(
    method: str | type[Learner], config: Any, problem: Problem, steps: int | None = None
) -> Learner:
    """Return a learner, by its name or class, with whatever the execution leaves open chosen.

    steps: batches of the stream, if it has a known end.
    """
    cls = METHODS[method] if isinstance(method, str) else method
    execution = problem.execution.settled(problem.input_shape, problem.width, steps)
    return cls(config, replace(problem, execution=execution))


def check_batch(batch: Batch, problem: Problem) -> None:
    """Refuse, in a sentence, a batch that the problem does not allow."""
    if len(batch.y) == 0:
        raise SteradError("the batch is empty: observe needs at least one image")
    check_inputs(batch.x, problem)
    if len(batch.x) != len(batch.y):
        raise SteradError(
            f"the batch has {len(batch.x)} images and {len(batch.y)} labels: give one an image"
        )
    labels = batch.y.tolist()  # for a few labels faster than two reductions in torch
    low, high = min(labels), max(labels)
    if low < 0:
        raise SteradError(f"label {low} is negative: labels are integers from 0")
    if problem.classes is not None and high >= problem.classes:
        raise SteradError(
            f"label {high} is outside the {problem.classes} declared classes: "
            f"labels go from 0 to {problem.classes - 1}; declare more classes, or none"
        )


def check_inputs(x: Tensor, problem: Problem) -> None:
    """Refuse images of another shape, type or range than the problem's."""
    check_shape(tuple(x.shape[1:]), problem)
    if not x.is_floating_point():
        raise SteradError(f"the images are {x.dtype}: a Batch holds floats in [0, 1]")
    # numpy's is ten times faster for a batch than torch's; it has no type for bfloat16.
    if not np.isfinite(x.detach().float().cpu().numpy()).all():
        raise SteradError(
            "the images hold NaN or infinite values: clean them before they are learned"
        )


def check_shape(shape: tuple[int, ...], problem: Problem) -> None:
    """Refuse images of another shape than the network was built for."""
    if shape != problem.input_shape:
        raise SteradError(
            f"the images have shape {shape} and the network was built for "
            f"{problem.input_shape}: bring every image to one number of channels and one size"
        )


def _flaw(method: Any) -> str | None:
    """Say why a class cannot be a method."""
    if not (isinstance(method, type) and issubclass(method, Learner)):
        return "is no subclass of Learner: extend sterad.methods.Replay, say"
    if missing := sorted(getattr(method, "__abstractmethods__", ())):
        return f"does not define {', '.join(missing)}: write what is missing"
    config = getattr(method, "Config", None)
    if not (isinstance(config, type) and is_dataclass(config)):
        return "has no `Config`: give it a frozen dataclass of its fields"
    if needed := [one.name for one in fields(config) if _is_required(one)]:
        return f"has fields without a default, {', '.join(needed)}: give each one"
    return None


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


METHODS: Registry[type[Learner]] = Registry("method", "sterad.methods", _flaw)
