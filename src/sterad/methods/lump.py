"""LUMP: lifelong unsupervised mixup, which learns from mixtures of old and new images.

Divyam Madaan, Jaehong Yoon, Yuanchun Li, Yunxin Liu, Sung Ju Hwang: Representational Continuity for
Unsupervised Continual Learning. ICLR 2022, https://arxiv.org/abs/2110.06976

For each stream batch B:
  1. retrieve a partner from memory for each image; no step while the memory is empty;
  2. x = λ new + (1 - λ) old with one λ from Beta(α, α), α = 0.4;
  3. two random views of x, each in its own forward pass; z = unit-length projection;
  4. step on the SimCLR loss: the views of one mixture together, all others apart;
  5. offer B to the reservoir. Only the nearest-mean classifier uses labels, those in memory.

The AAAI 2024 code draws 64 images and mixes the first |B| of them; here |B| are drawn, which is the
same distribution once the memory holds 64. It released no configuration: temperature, projection
and optimizer are SCR's by our choice, with a tenth of its learning rate: with SCR's own, class
means on digits are worse than those of an untrained network. With a tenth they are hardly better:
on so short a stream this loss contributes little.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.base.learner import METHODS, Cost, Problem
from sterad.methods.base.parts import Parts
from sterad.methods.scr import SCR, SCRConfig
from sterad.seeds import generator
from sterad.streams import Batch
from sterad.torch_private import standard_gamma
from sterad.validation import BatchSize, Positive, Range


@dataclass(frozen=True)
class LUMPConfig(SCRConfig):
    """SCR's settings with another learning rate, and the paper's mixtures."""

    lr: Positive = 0.001
    views: Annotated[int, Range(2, 1000)] = 2
    """Random views of each mixture, at least two; the mixture itself is not used."""
    memory_batch: BatchSize = 64
    """Maximum number of partners for a stream batch; at most one per image is drawn."""
    alpha: Positive = 0.4
    """Parameter of the Beta distribution of λ: below 1, mixtures are mostly of one image."""


@METHODS.register("lump")
class LUMP(SCR):
    """SimCLR on mixtures of stream and memory."""

    Config = LUMPConfig
    config: LUMPConfig
    supervises_stages = False
    chooses_views = False

    def __init__(self, config: LUMPConfig, problem: Problem, parts: Parts) -> None:
        """Refuse inputs without random views."""
        super().__init__(config, problem, parts)
        if not self.augmentation.changes(torch.empty(0, *problem.input_shape)):
            raise SteradError(
                f"lump compares random views, and inputs of shape {problem.input_shape} have none "
                f"with augmentation {config.augmentation!r}: use er, or another augmentation"
            )
        self.rng["mixtures"] = generator(problem.seed, "mixtures")

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return the cost with one partner per image of the stream batch."""
        partners = min(config.memory_batch, batch_size)
        return super().cost(replace(config, memory_batch=partners), batch_size, memory, samples)

    @classmethod
    def step_cost(cls, config: Any, batch_size: int, replayed: int) -> float:
        """Return the cost of the views of one mixture per image of the stream batch."""
        return float(batch_size * config.views)

    def retrieve(self, batch: Batch) -> Batch:
        """Return a partner for each image of the stream batch."""
        return self.draw(min(self.config.memory_batch, len(batch)), batch)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean SimCLR loss: each mixture is its own class."""
        mixtures = Batch(self.mix(retrieved.x, batch.x), torch.arange(len(batch)))
        return self.contrast(*self.representations(mixtures))

    def virtual_loss(self, batch: Batch) -> Tensor:
        """Return the SimCLR loss of the stream batch, which is mixed with nothing."""
        return self.contrast(*self.representations(Batch(batch.x, torch.arange(len(batch)))))

    def loss_of_outputs(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return 0: the SimCLR loss compares two views of an image, and this is one."""
        return super().loss_of_outputs(outputs, torch.arange(len(labels)))

    def mix(self, old: Tensor, new: Tensor) -> Tensor:
        """Return λ new + (1 - λ) old; old images are repeated if they are too few."""
        shape = torch.full((2,), self.config.alpha, dtype=torch.float64)
        a, b = standard_gamma(shape, self.rng["mixtures"]).tolist()
        weight: float = a / (a + b)  # Beta(α, α) from two gamma draws
        partners = torch.arange(len(new)) % len(old)
        return weight * new + (1 - weight) * old[partners]

    def views_of(self, x: Tensor) -> list[Tensor]:
        """Return random views without x, drawn in one call, which is faster for few images.

        They share the order of the color changes, as the images of one view always do.
        """
        return list(self.view(torch.cat([x] * self.config.views)).chunk(self.config.views))
