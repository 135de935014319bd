"""Joint: train on all images seen for several epochs, the upper bound of every table.

Store every image of the stream, whatever the capacity of the memory. `consolidate` draws a new
network and trains it on all of them: cross-entropy of raw logits over all classes, one view of each
image. It is not an online method, and it is evaluated only at the end of the stream because that is
expensive. Nothing was released for it: the optimizer and its settings are ours, chosen on digits.

With a law, such as `--law angular-gaussian`, it trains the loss of `agd-fd` and `vmf-fd` in this
ordinary way: minus the mean log posterior of unit-length projections around the basis vectors,
among the classes of the batch. The nearest direction predicts, or a `classifier` on the features.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network
from sterad.errors import SteradError
from sterad.losses.class_posterior import posterior_loss
from sterad.methods.base.from_scratch import FromScratch, FromScratchConfig
from sterad.methods.base.learner import METHODS, Cost, Problem
from sterad.methods.base.parts import Parts
from sterad.sphere import LAWS, FastLogKernel, fast_log_kernel
from sterad.streams import Batch
from sterad.validation import (
    OMIT_DEFAULT_FROM_ID,
    BatchSize,
    Count,
    Dimension,
    NonNegative,
    Positive,
)


@dataclass(frozen=True)
class JointConfig(FromScratchConfig):
    """Our settings: SGD with a cosine schedule over all epochs."""

    lr: Positive = 0.03
    """Learning rate of the first epoch."""
    weight_decay: NonNegative = 5e-4
    memory_batch: BatchSize = 64
    """Number of images per training step."""
    epochs: Count = 20
    memory_policy: str = field(default="everything", metadata=OMIT_DEFAULT_FROM_ID)
    law: str = field(default="none", metadata=OMIT_DEFAULT_FROM_ID)
    """none: cross-entropy of logits; a law around fixed directions (see `sterad list laws`): minus
    the log posterior of unit-length projections."""
    variance: Positive = field(default=2.0, metadata=OMIT_DEFAULT_FROM_ID)
    """Variance of the law around each direction, as in agd-fd."""
    projection: Dimension = field(default=512, metadata=OMIT_DEFAULT_FROM_ID)
    """Dimension of the projection under a law, at least one per class."""


@METHODS.register("joint", alias=("offline",))
class Joint(FromScratch):
    """Training on everything seen, for several epochs."""

    Config = JointConfig
    config: JointConfig
    trains = "at-end"

    def __init__(self, config: JointConfig, problem: Problem, parts: Parts) -> None:
        """Refuse fields of a law without one."""
        for name in ("variance", "projection"):
            value = getattr(config, name)
            if config.law == "none" and value != getattr(JointConfig, name):
                raise SteradError(
                    f"{name}={value} has no effect on the cross-entropy of logits: set a law, such "
                    "as law=angular-gaussian"
                )
        self.law = None if config.law == "none" else LAWS[config.law]
        super().__init__(config, problem, parts)

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return the epochs over all samples of the stream for a consolidation."""
        keeps_all = config.memory_policy == "everything"
        return super().cost(config, batch_size, int(samples) if keeps_all else memory, samples)

    def rate(self, epoch: int) -> float:
        """Return the learning rate of a cosine schedule over all epochs."""
        return self.config.lr * (1 + math.cos(math.pi * epoch / self.config.epochs)) / 2

    def make_network(self, outputs: int) -> Network:
        """Give the projection its dimension, at least one per class."""
        return super().make_network(max(self.config.projection if self.law else 1, outputs))

    @property
    def log_density(self) -> FastLogKernel:
        """The law's log-density as a function of the cosine with a direction."""
        assert self.law is not None
        concentration = self.law.concentration_of(self.config.variance)
        return fast_log_kernel(self.law, concentration, self.network.outputs)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean loss of all views: cross-entropy, or minus the log posterior."""
        if self.law is None:
            return super().loss(retrieved, batch)
        z, labels = self.representations(Batch.concatenate(retrieved, batch))
        return posterior_loss(z, labels, self.log_density, reduction="mean")

    def class_scores(self, outputs: Tensor) -> Tensor:
        """Return logits of the seen classes, or log-densities around their directions."""
        if self.law is None:
            return super().class_scores(outputs)
        return self.log_density(F.normalize(outputs)[:, self.seen])

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return None: what is stored does not count against a capacity."""
        return None
