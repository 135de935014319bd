"""PFC: replay with a fixed classifier, whose directions form a regular simplex.

Federico Pernici, Matteo Bruni, Claudio Baecchi, Francesco Turchini, Alberto Del Bimbo:
Class-incremental Learning with Pre-allocated Fixed Classifiers. ICPR 2020,
https://arxiv.org/abs/2010.08657

The steps are those of ER with another network:
  1. a pre-activation ResNet-18, then a trainable linear layer to C - 1 outputs;
  2. logits = their products with the C vertices of a regular simplex in C - 1 dimensions, which
     are not trained: unit length, cosines -1/(C - 1), no bias, no temperature;
  3. mean cross-entropy over all C classes, also those to come.

C must be known in advance: the simplex cannot grow, because one more vertex moves all others. The
AAAI 2024 code released no configuration: the learning rate is our choice, by studies/grid-pfc.toml.
"""

from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from sterad.encoders import Network
from sterad.encoders.heads import frozen_layer
from sterad.errors import SteradError
from sterad.methods.base.learner import METHODS, Problem
from sterad.methods.base.parts import Parts
from sterad.methods.er import ER, ERConfig
from sterad.sphere import regular_simplex
from sterad.validation import BelowOne, Positive

PREACTIVATED = {"resnet18": "preact-resnet18"}


@dataclass(frozen=True)
class PFCConfig(ERConfig):
    """ER's settings with the learning rate of a grid search, as none was released."""

    lr: Positive = 0.1
    momentum: BelowOne = 0.0
    preactivation: bool = True
    """Use the pre-activation ResNet-18 in place of resnet18; other encoders stay."""


@METHODS.register("pfc")
class PFC(ER):
    """Cross-entropy of products with the vertices of a simplex."""

    Config = PFCConfig
    config: PFCConfig

    @classmethod
    def default_parts(cls, config: Any, problem: Problem) -> Parts:
        """Choose the encoder; refuse a problem without a declared number of classes."""
        if problem.classes is None:
            raise SteradError(
                "pfc needs the number of classes in advance, because its directions cannot grow: "
                "declare the classes, or use another method such as er"
            )
        encoder = problem.encoder
        if config.preactivation:
            encoder = PREACTIVATED.get(encoder, encoder)
        return super().default_parts(config, replace(problem, encoder=encoder))

    def make_network(self, outputs: int) -> Network:
        """Add the fixed simplex after a trainable head of its dimensions: classes - 1, or two."""
        network = super().make_network(max(2, outputs - 1))
        vertices = regular_simplex(outputs, network.outputs)
        network.head = nn.Sequential(network.head, frozen_layer(vertices))
        return network

    def widen(self, outputs: int) -> None:
        """Refuse to grow."""
        raise SteradError(
            f"the fixed simplex of pfc has {self.network.outputs} directions and cannot grow to "
            f"{outputs}: declare all classes in advance"
        )
