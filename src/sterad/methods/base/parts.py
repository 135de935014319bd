"""The fields and parts of a replay method: parts are objects, which the fields choose by name."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import torch
from torch import Tensor

from sterad.classifiers import CLASSIFIERS, Classifier
from sterad.encoders import Encoder
from sterad.engine import Engine
from sterad.engine.engine import MakeOptimizer
from sterad.errors import SteradError
from sterad.memory import (
    MEMORIES,
    RETRIEVALS,
    MaximallyInterfered,
    Memory,
    RandomRetrieval,
    Retrieval,
    SlotMemory,
)
from sterad.memory.checks import copy_prototype
from sterad.methods.base.additions import Addition
from sterad.methods.base.chain import ChainConfig, DistillationChain
from sterad.methods.base.flattening import Flattening, FlatteningConfig
from sterad.methods.base.learner import Problem
from sterad.methods.base.optimizers import OptimizerConfig, make_optimizer, wrap_factory
from sterad.methods.base.preparatory import PreparatoryClasses, PreparatoryConfig
from sterad.methods.base.stage_supervision import StageConfig, StageSupervision
from sterad.methods.base.teacher import MomentumDistillation, TeacherConfig
from sterad.seeds import generator
from sterad.validation import (
    ADVANCED,
    OMIT_DEFAULT_FROM_ID,
    BatchSize,
    BelowOne,
    Count,
    Dimension,
    NonNegative,
    Range,
    Share,
    Views,
    field_names,
)
from sterad.views import AUGMENTATIONS
from sterad.views.augmentations import Augmentation, Transform

PositiveShare = Annotated[float, Range(0, 1, open_low=True)]
_RARE = OMIT_DEFAULT_FROM_ID | ADVANCED
ADDITIONS: tuple[type[Addition], ...] = (
    StageSupervision,
    MomentumDistillation,
    DistillationChain,
    Flattening,
    PreparatoryClasses,
)
"""What any replay method can switch on; losses are added in this order. The first one ends to keep
the passes of the method's own loss before others pass the network; the last one ends to add labels
to all losses of a step."""


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
    retrieval: Retrieval = field(default_factory=RandomRetrieval)
    """Chooses which samples of the memory are replayed."""
    engine: Callable[..., Engine] = Engine
    """Makes the engine that computes the network; called as `Engine` is."""

    def with_objects(self, problem: Problem, **objects: Any) -> "Parts":
        """Return the parts with a user's objects in place of those of the same name.

        memory: a policy such as `ClassBalanced(5000)`, which is copied; retrieval: a `Retrieval`;
        optimizer: a function from parameters to an optimizer, or to an optimizer and a scheduler;
        augmentation: an `Augmentation`, or any function of a batch of inputs; classifier: a class.
        None keeps the part, except for the classifier: None lets the head predict.
        """
        convert: dict[str, Callable[[Any], Any]] = {
            "memory": lambda one: copy_prototype(one, generator(problem.seed, "memory")),
            "retrieval": _copy_retrieval,
            "optimizer": wrap_factory,
            "augmentation": lambda one: make_augmentation(one, problem.flip),
            "classifier": _check_classifier,
        }
        given = {k: v for k, v in objects.items() if v is not None or k == "classifier"}
        return replace(self, **{k: convert.get(k, lambda one: one)(v) for k, v in given.items()})


@dataclass(frozen=True)
class AugmentationConfig:
    """Fields of augmentations; one that is not given has the default of the augmentation."""

    flip_probability: Share | None = field(default=None, metadata=_RARE)
    """Probability of a mirrored image (default: 0.5 where the dataset allows it, else 0)."""
    min_crop: Annotated[float, Range(0, 1, open_low=True)] | None = field(
        default=None, metadata=_RARE
    )
    """full: minimum area of a crop, as a fraction of the image (default: 0.2)."""
    color_jitter: Share | None = field(default=None, metadata=_RARE)
    """full: maximum relative change of brightness, contrast and saturation (default: 0.4)."""
    hue_jitter: Annotated[float, Range(0, 0.5)] | None = field(default=None, metadata=_RARE)
    """full: maximum rotation of the hue in turns (default: 0.1)."""
    jitter_probability: Share | None = field(default=None, metadata=_RARE)
    """full: probability of changed colors (default: 0.8)."""
    gray_probability: Share | None = field(default=None, metadata=_RARE)
    """full: probability of a gray image (default: 0.2)."""
    padding: Views | None = field(default=None, metadata=_RARE)
    """partial: maximum shift in pixels (default: 4, at most a quarter of the side)."""
    noise_std: NonNegative | None = field(default=None, metadata=_RARE)
    """noise: standard deviation of the noise added to each feature (default: 0.1)."""
    feature_dropout: BelowOne | None = field(default=None, metadata=_RARE)
    """noise: probability of a feature that is set to 0 (default: 0.1)."""


@dataclass(frozen=True)
class ReplayConfig(
    AugmentationConfig,
    StageConfig,
    TeacherConfig,
    ChainConfig,
    FlatteningConfig,
    PreparatoryConfig,
    OptimizerConfig,
):
    """The fields that every replay method has."""

    memory_batch: BatchSize = 64
    """Images retrieved from memory for each stream batch."""
    memory_iterations: Count = 1
    """Steps on each stream batch, each with newly retrieved images."""
    augmentation: str = "full"
    """full (crop, flip, color, gray), partial (shifted crop, flip), noise (also for feature
    vectors) or none."""
    views: Views = 1
    """Random views of each image; with several, the raw image is used as well; 0: only that."""
    raw_view: bool | None = field(default=None, metadata=_RARE)
    """Whether the raw image is used beside random views (default: as the method does)."""
    view_size: Dimension | None = field(default=None, metadata=_RARE)
    """Side of random views in pixels, below that of the images (default: theirs)."""
    head: str = "linear"
    """Layers on the encoder: mlp, linear, cosine or none."""
    classifier: str = "head"
    """What predicts: the trained head, or a classifier that is fitted to features of the memory."""
    memory_policy: str = field(default="reservoir", metadata=OMIT_DEFAULT_FROM_ID)
    """Which images the memory keeps: see `sterad list memories`."""
    retrieval: str = field(default="random", metadata=OMIT_DEFAULT_FROM_ID)
    """Which images of the memory are replayed: random, class-balanced or mir, the maximally
    interfered ones; see `sterad list retrievals`."""
    mir_candidates: Count | None = field(default=None, metadata=_RARE)
    """mir: random candidates for the replayed images (default: five for each, as published)."""
    head_width: Dimension | None = field(default=None, metadata=_RARE)
    """Hidden units of an mlp head (default: 512)."""
    review: bool = field(default=False, metadata=OMIT_DEFAULT_FROM_ID)
    """Review trick: after each task, one pass over the memory in random batches of memory_batch
    images, with gradients divided by 10."""


@dataclass(frozen=True)
class UnitLogitsConfig:
    """The field of methods whose released code scales logits to unit length."""

    unit_logits: bool = field(default=False, metadata=OMIT_DEFAULT_FROM_ID)
    """Scale logits to unit length, as the released code of the paper does; its learning rates
    were found that way."""


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
    memory = MEMORIES[config.memory_policy](problem.memory, rng)
    if memory.capacity > problem.memory and getattr(memory, "is_bounded", True):
        raise SteradError(
            f"the memory policy {config.memory_policy!r} has capacity {memory.capacity} where "
            f"{problem.memory} was requested: its capacity must be the one that it is given"
        )
    return Parts(
        encoder=problem.encoder_factory(),
        optimizer=partial(make_optimizer, config),
        memory=memory,
        augmentation=_named_augmentation(config, problem.flip),
        classifier=CLASSIFIERS[config.classifier] if fitted else None,
        retrieval=make_retrieval(config),
    )


def make_retrieval(config: ReplayConfig) -> Retrieval:
    """Return the retrieval that a config names."""
    retrieval = RETRIEVALS[config.retrieval]()
    if isinstance(retrieval, MaximallyInterfered):
        given = config.mir_candidates
        if given is not None and given <= config.memory_batch:
            raise SteradError(
                f"mir_candidates {given} for memory_batch {config.memory_batch} leave nothing to "
                "select: give more candidates, or a smaller memory_batch"
            )
        return replace(retrieval, candidates=given)
    if config.mir_candidates is not None:
        raise SteradError(
            f"mir_candidates={config.mir_candidates} has no effect on retrieval="
            f"{config.retrieval}: use retrieval=mir"
        )
    return retrieval


def _named_augmentation(config: ReplayConfig, flip: bool) -> Augmentation:
    """Return the augmentation that a config names, with those of its fields that are given."""
    cls = AUGMENTATIONS[config.augmentation]
    names = field_names(AugmentationConfig)
    given = {name: v for name in names if (v := getattr(config, name)) is not None}
    if unknown := [name for name in given if name not in field_names(cls)]:
        raise SteradError(
            f"the augmentation {config.augmentation!r} has no field {unknown[0]!r}: leave it "
            "unset, or choose another augmentation"
        )
    if "flip_probability" in given:
        flip = given["flip_probability"] > 0
    return cls(flip=flip, **given)


def make_augmentation(given: Any, flip: bool) -> Augmentation:
    """Return the augmentation of a user's object: an Augmentation, its class, or a function."""
    if isinstance(given, Augmentation):
        return given
    if isinstance(given, type) and issubclass(given, Augmentation):
        return given(flip=flip)
    if not callable(given):
        raise SteradError(
            f"the augmentation is {type(given).__name__}: give an Augmentation, or a function from "
            "a batch of inputs to a batch of the same shape"
        )
    return Transform(function=given)


def _copy_retrieval(given: Any) -> Retrieval:
    """Return a copy of a user's retrieval, so that one serves many learners."""
    if not isinstance(given, Retrieval):
        raise SteradError(
            f"the retrieval is {type(given).__name__}: give an object of a subclass of "
            "sterad.memory.Retrieval"
        )
    return deepcopy(given)


def _check_classifier(given: Any) -> Any:
    """Refuse what is no class of classifiers."""
    if given is not None and not (hasattr(given, "fit") and hasattr(given, "scores")):
        name = getattr(given, "__name__", type(given).__name__)
        raise SteradError(
            f"the classifier {name} does not define fit and scores: give a class such as "
            "sterad.classifiers.NearestMean, or None for predictions of the head"
        )
    return given


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
