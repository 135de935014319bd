"""RotatedReplay: what OCM and OnPro share, representations of sixteen rotated variants."""

from dataclasses import dataclass
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.encoders import Network
from sterad.errors import SteradError
from sterad.methods.base.boundaries import BoundaryConfig
from sterad.methods.base.learner import METHODS, Problem
from sterad.methods.base.optimizers import OptimizerName
from sterad.methods.base.parts import Parts, ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.seeds import generator, use_generator
from sterad.streams import Batch
from sterad.validation import BelowOne, Dimension, NonNegative, Positive, Range
from sterad.views.geometry import FOLD


@dataclass(frozen=True)
class RotatedReplayConfig(BoundaryConfig, ReplayConfig):
    """The released settings of both methods."""

    optimizer: OptimizerName = "adam"
    weight_decay: NonNegative = 1e-4
    beta2: BelowOne = 0.99
    views: Annotated[int, Range(1, 1)] = 1
    """Always 1: the loss takes one random view."""
    projection: Dimension = 128
    """Dimension of the representations."""
    temperature: Positive = 0.07
    """Divisor of the similarities."""


class RotatedReplay(Replay):
    """A network with a second linear head, the representation."""

    config: Any
    takes_features = False
    chooses_views = False

    def __init__(self, config: Any, problem: Problem, parts: Parts) -> None:
        """Refuse inputs that cannot be rotated."""
        shape, name = problem.input_shape, METHODS.name_of(type(self))
        if len(shape) != 3:
            raise SteradError(f"{name} rotates images, and inputs {shape} are vectors: use er")
        if shape[1] != shape[2]:
            raise SteradError(
                f"{name} rotates images by 90°, and images of {shape[1]} × {shape[2]} pixels are "
                "not square: crop or pad them to a square, or use er"
            )
        super().__init__(config, problem, parts)
        self.rng["slices"] = generator(problem.seed, "slices")

    def make_network(self, outputs: int) -> Network:
        """Add a second linear head, the representation."""
        network = super().make_network(outputs)
        features = network.encoder.features
        with use_generator(self.rng["network"]):
            network.representation = nn.Linear(features, min(self.config.projection, features))
        return network

    def kinds(self, batch: Batch) -> Tensor:
        """Return the labels of the rotated variants, one per class and rotation."""
        rotation = torch.arange(FOLD).repeat_interleave(len(batch))
        return self.engine.to_device(FOLD * batch.y.repeat(FOLD) + rotation)

    def represent(self, network: Network, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return unit features and unit representations of images."""
        self.engine.count(x, backward=network is self.network)
        h = network.features(self.engine.to_device(x))
        return F.normalize(h), F.normalize(network.get_submodule("representation")(h))

    def slice_of(self, f: Tensor, u: Tensor) -> Tensor:
        """Return a random contiguous slice of the features f, with as many columns as u."""
        starts = f.shape[1] - u.shape[1] + 1
        (start,) = torch.randint(starts, (1,), generator=self.rng["slices"]).tolist()
        return f[:, start : start + u.shape[1]]
