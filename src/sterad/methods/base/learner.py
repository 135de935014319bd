"""Learner: the interface of every method, and `build_learner`, which makes one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self, TypeVar, overload

import numpy as np
import torch
from torch import Tensor, nn

from sterad.encoders import Encoder, EncoderOptions, Network, make_encoder
from sterad.encoders.make import EncoderSource, is_registered
from sterad.encoders.own_encoder import copy_module
from sterad.engine import Execution
from sterad.engine.passes import Passes
from sterad.errors import SteradError
from sterad.registry import Registry
from sterad.saved_state import bytes_of, check_labels
from sterad.streams import Batch, Boundary
from sterad.validation import check_fields, field_names

L = TypeVar("L", bound="Learner")
TrainingTime = Literal["on-stream", "at-evaluation", "at-end"]
PREDICTION_BATCH_SIZE = 500
"""Images passed to `predict` at a time where there are many."""
FORWARD_COST = 1 / 3
"""Cost of a forward pass without a backward pass, relative to both."""


@dataclass(frozen=True)
class Problem:
    """What is known before the first batch, and nothing of the stream's order."""

    input_shape: tuple[int, ...]
    """(channels, height, width) of images or (d,) of feature vectors."""
    classes: int | None
    """Number of classes declared in advance; None if new ones may appear at any time."""
    memory: int
    """Capacity of the memory in images."""
    flip: bool = False
    """Whether a mirrored image keeps its class."""
    encoder: str = "resnet18"
    width: int = 64
    seed: int = 0
    announced: bool = False
    """Whether the stream announces the ends of tasks."""
    execution: Execution = Execution()  # noqa: RUF009 - it is frozen
    """How the network is computed: not part of a run's id."""
    encoder_options: EncoderOptions = EncoderOptions()  # noqa: RUF009 - it is frozen
    """What is trained of the encoder, its first weights and the inputs it expects."""

    def encoder_factory(self, source: EncoderSource | None = None) -> Callable[[], Encoder]:
        """Return a function that makes the encoder: `source`, or the one of the name."""
        source = self.encoder if source is None else source
        if isinstance(source, nn.Module):
            source = copy_module(source)  # now, because the user may train it later
        return partial(make_encoder, source, self.input_shape, self.width, self.encoder_options)


@dataclass(frozen=True)
class Cost:
    """Images through the network; one that is only passed forward counts as `FORWARD_COST`."""

    step: float = 0.0
    """For each stream batch."""
    consolidation: float = 0.0
    """For each `consolidate()`."""


class Learner(ABC):
    """A method in training. All of its state, and nothing else, is in `state_dict()`."""

    Config: ClassVar[type[Any]]
    """The frozen dataclass of the method's fields."""
    default_encoder: ClassVar[str] = "resnet18"
    """Name of the encoder of a run that names none."""
    trains_encoder: ClassVar[bool] = True
    """Whether the method trains a network from inputs to outputs; otherwise it learns from
    features, and an encoder in front of it is frozen."""
    takes_features: ClassVar[bool] = True
    """Whether the method learns from feature vectors as well as from images."""
    trains: TrainingTime = "on-stream"
    """When the network is trained: with each batch, in each `consolidate()`, or in a single one
    after the last batch, because it is expensive."""

    def __init__(self, config: Any, problem: Problem) -> None:
        """Check the config; no class has been seen."""
        check_fields(config)
        self.config = config
        self.problem = problem
        self.seen = torch.zeros(0, dtype=torch.int64)
        """Labels seen so far, ascending."""
        self.sample_losses: list[tuple[Tensor, Tensor]] | None = None
        """If a list, `observe` appends losses (n,) and labels (n,) of its samples where the method
        has them; this does not change what is learned."""
        self.consolidation_images = 0
        """Images passed through networks that `consolidate()` trains; not part of the state,
        because consolidation does not change what is learned."""
        self.consolidation_passes = Passes()
        """The same images by their shape."""

    @classmethod
    def default_parts(cls, config: Any, problem: Problem) -> Any:
        """Return the parts that the config names, or None if the method takes no parts."""
        return None

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return the cost with a memory of this capacity on a stream of so many samples."""
        return Cost(step=batch_size)

    @property
    def inner(self) -> "Learner":
        """The learner with the method's state: this one, or the one behind a frozen encoder."""
        return self

    @property
    def images(self) -> int:
        """Images passed through the network in training, all views counted."""
        return 0

    @property
    def passes(self) -> Sequence[tuple[Network, Passes]]:
        """The passes in training, with the network that they went through."""
        return ()

    @property
    def state_bytes(self) -> int:
        """Bytes that the method keeps between batches: network, optimizer, teacher, memory."""
        return bytes_of(self.state_dict())

    @property
    def uses_seed(self) -> bool:
        """Whether what is learned depends on the problem's seed, beside the order of the stream."""
        return True

    @abstractmethod
    def observe(self, batch: Batch) -> Tensor | None:
        """Learn from a batch, which comes once; return its loss, or None without a step."""

    def boundary(self, event: Boundary) -> None:  # noqa: B027 - optional
        """Handle the announced end of a task; many streams announce none."""

    @abstractmethod
    def consolidate(self) -> None:
        """Prepare for `scores` and `predict`: fit the classifier to the memory."""

    @abstractmethod
    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (n, k) scores as of the last `consolidate()` and the k labels of the columns."""

    @abstractmethod
    def immediate_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the current weights, without a call of `consolidate()` before."""

    def record_losses(self, loss: Callable[..., Tensor], outputs: Tensor, labels: Tensor) -> None:
        """Append the losses of single samples to `sample_losses`, if that is a list."""
        if self.sample_losses is not None:
            losses = loss(outputs.detach(), labels, reduction="none")
            self.sample_losses.append((losses, labels))

    def predict(self, x: Tensor) -> Tensor:
        """Return the label of each of x: (n, ...), as of the last `consolidate()`."""
        scores, labels = self.scores(x)
        return labels[scores.argmax(dim=1)]

    def on_sphere(self, x: Tensor) -> Tensor | None:
        """Return unit representations around the standard basis, if the method has any."""
        return None

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return the number of stored images of each class, or None without a memory."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as values that `torch.load(weights_only=True)` admits."""
        return {"seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()` of a learner with equal config and problem, bit for bit."""
        check_labels(state["seen"], "seen")
        self.seen = state["seen"]

    def fork(self) -> Self:
        """Return a copy that learns and predicts on its own."""
        return deepcopy(self)

    def see(self, batch: Batch) -> None:
        """Check a batch and add its classes to `seen`."""
        check_batch(batch, self.problem)
        self._add_classes(batch.y)

    def _add_classes(self, labels: Tensor) -> bool:
        """Add the classes of `labels` to `seen`; return whether one of them is new."""
        known = set(self.seen.tolist())
        new = set(labels.tolist()) - known
        if new:
            self.seen = torch.tensor(sorted(known | new))
        return bool(new)


@overload
def build_learner(
    method: type[L], config: Any, problem: Problem, steps: int | None = None, **parts: Any
) -> L: ...
@overload
def build_learner(
    method: str, config: Any, problem: Problem, steps: int | None = None, **parts: Any
) -> Learner: ...
def build_learner(
    method: str | type[Learner],
    config: Any,
    problem: Problem,
    steps: int | None = None,
    **parts: Any,
) -> Learner:
    """Return a learner; every name in `config` and `problem` is resolved here, once.

    steps: batches of the stream, if it has a known end; the execution's open choices depend on it.
    parts: objects in place of those that the names stand for, see `methods.base.parts.Parts`.

    A method on features of a frozen encoder is wrapped: see `methods.base.frozen_encoder`.
    """
    cls = METHODS[method] if isinstance(method, str) else method
    check_fields(config)
    source = problem.encoder if parts.get("encoder") is None else parts["encoder"]
    problem = replace(problem, execution=resolve_execution(problem, source, steps))
    default = cls.default_parts(config, problem)
    known = [] if cls.trains_encoder else ["encoder"]
    known = known if default is None else field_names(type(default))
    if unknown := sorted(set(parts) - set(known)):
        raise SteradError(
            f"{cls.__name__} has no part {unknown[0]!r}: its parts are {', '.join(known) or 'none'}"
        )
    others = {name: part for name, part in parts.items() if name != "encoder"}
    own = {} if source is problem.encoder else {"encoder": problem.encoder_factory(source)}
    complete = None if default is None else default.with_objects(problem, **others, **own)
    from sterad.methods.base import frozen_encoder  # which imports this module

    if frozen_encoder.is_needed(cls, config, problem, complete, source):
        factory = problem.encoder_factory(source) if complete is None else complete.encoder
        if complete is not None:
            others["classifier"] = complete.classifier
        return frozen_encoder.FrozenEncoder(cls, config, problem, factory, others)
    return cls(config, problem) if complete is None else cls(config, problem, complete)  # type: ignore[call-arg]


def resolve_execution(problem: Problem, source: EncoderSource, steps: int | None) -> Execution:
    """Return the execution with open choices made for the encoder and its inputs.

    Only registered encoders are compiled by default: what it saves for others is not known.
    """
    execution, side = problem.execution, problem.encoder_options.input_size
    if execution.compile is None and not is_registered(source):
        execution = replace(execution, compile=False)
    resized = side is not None and len(problem.input_shape) == 3
    shape = (problem.input_shape[0], side or 0, side or 0) if resized else problem.input_shape
    return execution.resolve(shape, problem.width, steps)


def check_batch(batch: Batch, problem: Problem) -> None:
    """Refuse a batch that does not fit the problem."""
    if len(batch.y) == 0:
        raise SteradError("the batch is empty: observe needs at least one image")
    check_inputs(batch.x, problem)
    if len(batch.x) != len(batch.y):
        raise SteradError(
            f"the batch has {len(batch.x)} images and {len(batch.y)} labels: "
            "give one label per image"
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
    """Refuse inputs of another shape or dtype than the problem's, and those that are not finite."""
    check_shape(tuple(x.shape[1:]), problem)
    if not x.is_floating_point():
        raise SteradError(f"the images are {x.dtype}: a Batch holds floats in [0, 1]")
    # For a batch numpy is ten times as fast as torch; it has no bfloat16.
    if not np.isfinite(x.detach().float().cpu().numpy()).all():
        raise SteradError("the images hold NaN or infinite values: remove them before learning")


def check_shape(shape: tuple[int, ...], problem: Problem) -> None:
    """Refuse inputs of another shape than the network was built for."""
    if shape != problem.input_shape:
        raise SteradError(
            f"the images have shape {shape} and the network was built for "
            f"{problem.input_shape}: bring every image to one number of channels and one size"
        )


def _flaw(method: Any) -> str | None:
    """Return why a class cannot be registered as a method."""
    if not (isinstance(method, type) and issubclass(method, Learner)):
        return "is no subclass of Learner: extend sterad.methods.Replay, for example"
    if missing := sorted(getattr(method, "__abstractmethods__", ())):
        return f"does not define {', '.join(missing)}: define each"
    config = getattr(method, "Config", None)
    if not (isinstance(config, type) and is_dataclass(config)):
        return "has no `Config`: give it a frozen dataclass of its fields"
    required = [
        field.name
        for field in fields(config)
        if field.default is MISSING and field.default_factory is MISSING
    ]
    if required:
        return f"has fields without a default, {', '.join(required)}: give each one"
    return None


METHODS: Registry[type[Learner]] = Registry("method", "sterad.methods", _flaw)
