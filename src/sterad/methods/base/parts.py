"""The fields and parts of a replay method: parts are objects, which the fields choose by name."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal

import torch
from torch import Tensor

from sterad.classifiers import CLASSIFIERS, Classifier
from sterad.encoders import Encoder, Network
from sterad.engine import Engine
from sterad.engine.engine import MakeOptimizer, flatten_groups
from sterad.errors import SteradError
from sterad.memory import MEMORIES, Memory, SlotMemory
from sterad.methods.base.learner import Problem
from sterad.methods.base.teacher import TeacherConfig
from sterad.seeds import generator
from sterad.validation import (
    OMIT_DEFAULT_FROM_ID,
    BatchSize,
    BelowOne,
    Count,
    NonNegative,
    Positive,
    Views,
)
from sterad.views import AUGMENTATIONS
from sterad.views.augmentations import Augmentation

FUSED_DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class Parts:
    """What a replay method works with; `Replay.default_parts` makes them from names."""

    encoder: Callable[[], Encoder]
    """Makes a new encoder, whose initial weights come from torch's generator."""
    optimizer: MakeOptimizer
    """Makes an optimizer of trainable weights."""
    memory: Memory
    augmentation: Augmentation
    classifier: type[Classifier] | None
    """Fitted to features of the memory for predictions; None: the head predicts."""
    engine: Callable[..., Engine] = Engine
    """Makes the engine that computes the network; called as `Engine` is."""


@dataclass(frozen=True)
class OptimizerConfig:
    """Optimizer and learning rate."""

    lr: Positive = 0.01
    """Learning rate."""
    optimizer: Literal["adam", "sgd"] = "sgd"
    """Adam, or stochastic gradient descent."""
    momentum: BelowOne = 0.9
    """Momentum of SGD; Adam's is always 0.9."""
    beta2: BelowOne = 0.999
    """Decay of Adam's mean of squared gradients, in [0, 1)."""
    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient."""
    clip: Positive | None = None
    """Maximum gradient norm (default: no limit)."""


@dataclass(frozen=True)
class ReplayConfig(TeacherConfig, OptimizerConfig):
    """The fields that every replay method has."""

    memory_batch: BatchSize = 64
    """Images retrieved from memory for each stream batch."""
    memory_iterations: Count = 1
    """Steps on each stream batch, each with newly retrieved images."""
    augmentation: str = "full"
    """full (crop, flip, color, gray), partial (shifted crop, flip) or none."""
    views: Views = 1
    """Random views of each image; with several, the raw image is used as well; 0: only that."""
    head: str = "linear"
    """Layers on the encoder: mlp, linear, cosine or none."""
    classifier: str = "head"
    """What predicts: the trained head, or a classifier that is fitted to features of the memory."""
    memory_policy: str = field(default="reservoir", metadata=OMIT_DEFAULT_FROM_ID)
    """Which images the memory keeps: see `sterad list memories`."""


def make_optimizer(
    config: OptimizerConfig, parameters: Iterable[Any], scaled: bool = False
) -> torch.optim.Optimizer:
    """Return the optimizer that a config names.

    parameters: weights, or parameter groups with their own learning rates.
    scaled: whether the loss is scaled, so that steps with infinite gradients are skipped.
    """
    weights = list(parameters)
    # The fused kernel keeps its step count beside the weights and needs no synchronization. On the
    # CPU it does not skip steps with infinite scaled gradients (torch 2.13).
    on_device = all(one.device.type in FUSED_DEVICES for one in flatten_groups(weights))
    fused = not scaled and on_device
    if config.optimizer == "adam":
        betas = (0.9, config.beta2)
        return torch.optim.Adam(
            weights, lr=config.lr, betas=betas, weight_decay=config.weight_decay, fused=fused
        )
    return torch.optim.SGD(
        weights,
        lr=config.lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        fused=fused,
    )


def make_parts(config: ReplayConfig, problem: Problem, head_classifier: str | None) -> Parts:
    """Return the parts that the names in `config` and `problem` stand for.

    head_classifier: the classifier's name for which nothing is fitted.
    """
    known = [*filter(None, [head_classifier]), *CLASSIFIERS]
    if config.classifier not in known:
        raise SteradError(
            f"unknown classifier {config.classifier!r} for this method: "
            f"known are {', '.join(known)}"
        )
    rng, fitted = generator(problem.seed, "memory"), config.classifier != head_classifier
    return Parts(
        encoder=problem.encoder_factory(),
        optimizer=partial(make_optimizer, config),
        memory=MEMORIES[config.memory_policy](problem.memory, rng),
        augmentation=AUGMENTATIONS[config.augmentation](flip=problem.flip),
        classifier=CLASSIFIERS[config.classifier] if fitted else None,
    )


def load_memory(
    memory: Memory, state: dict[str, Any], seen: Tensor, input_shape: tuple[int, ...]
) -> None:
    """Restore a memory, and refuse one that does not restore all of its state.

    Samples of another shape or of classes that were never seen are refused as well.
    """
    columns = state.get("columns")
    if isinstance(memory, SlotMemory) and columns:
        x, y = columns["x"], columns["y"]
        dtypes = (torch.uint8,) if len(input_shape) == 3 else (torch.float32, torch.float64)
        if tuple(x.shape[1:]) != input_shape or x.dtype not in dtypes:
            raise ValueError(f"the memory does not hold inputs of shape {input_shape}")
        if y.dim() != 1 or y.dtype != torch.int64:
            raise ValueError("the labels in memory are not int64 with one dimension")
        if not bool(torch.isin(y, seen).all()):
            raise ValueError("the memory holds classes that were never seen")
    memory.load_state_dict(state)
    if isinstance(memory, SlotMemory) and len(memory) != memory.filled(state):
        raise SteradError(
            f"the memory {type(memory).__name__} holds {len(memory)} samples after loading and "
            f"held {memory.filled(state)}: its state_dict() must contain all of its attributes"
        )


class EncodedMemory:
    """Features of everything in memory, computed again only when weights or memory change."""

    def __init__(self, memory: Memory) -> None:
        """Encode nothing yet."""
        self.memory = memory
        self._key = b""
        self._pairs: list[tuple[Tensor, Tensor]] = []

    def encode(self, engine: Engine, network: Network) -> list[tuple[Tensor, Tensor]]:
        """Return raw features and labels of the memory, in batches, in storage order."""
        if len(self.memory) == 0:
            raise SteradError("the memory is empty: observe a batch before you evaluate")
        with engine.evaluation(network) as folded:
            stored = chain.from_iterable((part.x, part.y) for part in self.memory.everything())
            key = _digest(chain(folded.parameters(), folded.buffers(), stored))
            if key != self._key:
                self._pairs = [
                    (engine.in_chunks(folded.features, part.x), engine.to_device(part.y))
                    for part in self.memory.everything()
                ]
                self._key = key
        return self._pairs


def _digest(tensors: Iterable[Tensor]) -> bytes:
    """Return a hash of the contents, whatever the device and memory format."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.digest()
