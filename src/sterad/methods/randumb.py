"""RanDumb: LDA on random features of the raw pixels, the control of every benchmark.

Ameya Prabhu, Shiven Sinha, Ponnurangam Kumaraguru, Philip H. S. Torr, Ozan Sener, Puneet K.
Dokania: Random Representations Outperform Online Continually Learned Representations. NeurIPS 2024,
https://arxiv.org/abs/2402.08823

For each image x of class c:
  1. h = √(2/D) cos(xW + b): random Fourier features of a Gaussian kernel; the seed fixes W and b;
  2. update the statistics of streaming LDA on h: see `sterad.methods.slda`.
Predictions as there, with a covariance that is shrunk by OAS. Nothing is learned but a linear
classifier, and no image is stored: a method that is not better has learned no representation.

It is exact, as SLDA is. Memory: D² + k·D numbers for k classes. An image costs O(D²); the first
prediction after an image solves once in O(D³): leave `test_then_train` off.
Differences from the paper: fewer features (there 25,000), no flipped copies of the images. The
width of the kernel is a declared multiple of √d for d pixels, so that it depends neither on labels
nor on the order of the stream.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sterad.devices import to_device
from sterad.methods.base.learner import METHODS, Problem
from sterad.methods.slda import SLDA, SLDAConfig
from sterad.seeds import generator
from sterad.validation import Dimension, Positive


@dataclass(frozen=True)
class RanDumbConfig(SLDAConfig):
    """Our settings, the same for all datasets."""

    projection: Dimension = 3000
    """Number D of random features."""
    kernel_width: Positive = 0.25
    """Standard deviation of the Gaussian kernel, divided by √d for d pixels; two random images
    differ by 0.2 to 0.4 per pixel, root mean square."""


@METHODS.register("randumb")
class RanDumb(SLDA):
    """Streaming LDA on random Fourier features."""

    Config = RanDumbConfig
    config: RanDumbConfig

    def __init__(self, config: RanDumbConfig, problem: Problem) -> None:
        """Draw frequencies and phases from the seed."""
        super().__init__(config, problem)
        rng = generator(problem.seed, "projection")
        double = torch.float64
        normal = torch.randn(self.inputs, self.features, generator=rng, dtype=double)
        phases = torch.rand(self.features, generator=rng, dtype=double) * 2 * math.pi
        width = config.kernel_width * math.sqrt(self.inputs)
        self.frequencies = to_device(normal / width, self.device)
        self.phases = to_device(phases, self.device)

    @property
    def features(self) -> int:
        """The number of random features."""
        return self.config.projection

    @property
    def uses_seed(self) -> bool:
        """Return True: the seed draws the features."""
        return True

    def embed(self, x: Tensor) -> Tensor:
        """Return the random Fourier features of x: (n, inputs)."""
        h = torch.addmm(self.phases, x, self.frequencies)
        return h.cos_().mul_(math.sqrt(2 / self.features))
