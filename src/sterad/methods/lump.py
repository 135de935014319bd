"""LUMP: lifelong unsupervised mixup, which learns from mixtures of old and new without labels.

Divyam Madaan, Jaehong Yoon, Yuanchun Li, Yunxin Liu, Sung Ju Hwang: Representational Continuity for
Unsupervised Continual Learning. ICLR 2022, https://arxiv.org/abs/2110.06976

For each stream batch B:
  1. retrieve a partner from memory for each image; nothing is learned while the memory is empty;
  2. x = λ new + (1 - λ) old with one λ from Beta(α, α), α = 0.4;
  3. show two random views of x, each in a forward pass of its own; z = unit-length projection;
  4. step on the SimCLR loss: the views of one mixture together, all others apart;
  5. offer B to the reservoir. Labels are used by the classifier alone, from the memory.

The AAAI 2024 code draws 64 images and mixes the first |B| of them; here |B| are drawn, the same
law once the memory holds 64, and before that not always the oldest images. It released no
configuration: temperature and projection are SCR's, by our choice, and so is the optimizer but for
its learning rate, a tenth of SCR's: with all of it, class means on digits are worse than those of a
network that was never trained. With a tenth they are hardly better: on so short a stream the class
means owe little to this loss.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.contrastive import Contrastive, ContrastiveConfig
from sterad.methods.learner import METHODS
from sterad.methods.problem import Problem
from sterad.seeds import generator
from sterad.sphere.draw import gamma
from sterad.streams import Batch
from sterad.validation import BatchSize, Positive, Range


@dataclass(frozen=True)
class LUMPConfig(ContrastiveConfig):
    """SCR's settings but for the learning rate, as none were released, and the paper's mixtures."""

    lr: Positive = 0.001
    views: Annotated[int, Range(2, 1000)] = 2
    """Number of random views per mixture, at least 2; the mixture itself is not used."""
    memory_batch: BatchSize = 64
    """Maximum number of images to mix with a stream batch; one per image is enough."""
    alpha: Positive = 0.4
    """Parameter of the Beta law of λ: below 1, mixtures are mostly one image."""


@METHODS.register("lump")
class LUMP(Contrastive):
    """SimCLR on mixtures of stream and memory."""

    Config = LUMPConfig
    config: LUMPConfig

    def __init__(self, config: LUMPConfig, problem: Problem) -> None:
        """Give the mixtures a generator of their own."""
        super().__init__(config, problem)
        if not self.augmentation.changes(torch.empty(0, *problem.input_shape)):
            raise SteradError(
                f"lump compares random views, and inputs of shape {problem.input_shape} have none "
                f"under augmentation {config.augmentation!r}: use er, or another augmentation"
            )
        self.rng["mixtures"] = generator(problem.seed, "mixtures")

    def retrieve(self, batch: Batch) -> Batch:
        """Return a partner for each image of the stream batch."""
        return self.memory.sample(min(self.config.memory_batch, len(batch)))

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean SimCLR loss: each mixture is a class of its own."""
        mixtures = Batch(self.mixed(retrieved.x, batch.x), torch.arange(len(batch)))
        return self.contrast(*self.representations(mixtures))

    def mixed(self, old: Tensor, new: Tensor) -> Tensor:
        """Return λ new + (1 - λ) old, where old images that are too few serve again."""
        shape = torch.full((2,), self.config.alpha, dtype=torch.float64)
        one, other = gamma(shape, self.rng["mixtures"]).tolist()
        share: float = one / (one + other)  # two gamma draws make a beta draw
        partners = torch.arange(len(new)) % len(old)
        return share * new + (1 - share) * old[partners]

    def views_of(self, x: Tensor) -> list[Tensor]:
        """Return random views of x alone, drawn at once: for so few images a call costs its steps.

        They share the order in which colors are changed, as the images of one view do anyway.
        """
        return list(self.view(torch.cat([x] * self.config.views)).chunk(self.config.views))
