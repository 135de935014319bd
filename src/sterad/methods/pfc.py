"""PFC: replay with a pre-allocated fixed classifier, whose directions form a regular simplex.

Federico Pernici, Matteo Bruni, Claudio Baecchi, Francesco Turchini, Alberto Del Bimbo:
Class-incremental Learning with Pre-allocated Fixed Classifiers. ICPR 2020,
https://arxiv.org/abs/2010.08657

The steps are those of ER; the network is another one:
  1. a pre-activation ResNet-18, then a trainable linear layer to C - 1 outputs;
  2. logits = their products with the C vertices of a regular simplex in C - 1 dimensions, which
     never change: unit length, cosines -1/(C - 1), no bias, no temperature;
  3. mean cross-entropy over all C classes, also those to come.

C must be known beforehand: the simplex cannot grow, as one more vertex moves all others. The AAAI
2024 code released no configuration: the step size is our choice, by studies/grid-pfc.toml.
"""

from dataclasses import dataclass, replace

from torch import nn

from sterad.encoders import Network
from sterad.encoders.heads import frozen_layer
from sterad.errors import SteradError
from sterad.methods.er import ER, ERConfig
from sterad.methods.learner import METHODS
from sterad.methods.problem import Problem
from sterad.sphere import regular_simplex
from sterad.validation import BelowOne, Positive

PREACTIVATED = {"resnet18": "preact-resnet18"}


@dataclass(frozen=True)
class PFCConfig(ERConfig):
    """ER's settings with the step size that a grid found, as none were released."""

    lr: Positive = 0.1
    momentum: BelowOne = 0.0
    preactivation: bool = True
    """Use the pre-activation ResNet-18 for resnet18; other encoders are unchanged."""


@METHODS.register("pfc")
class PFC(ER):
    """Cross-entropy of products with fixed directions."""

    Config = PFCConfig
    config: PFCConfig

    def __init__(self, config: PFCConfig, problem: Problem) -> None:
        """Choose the encoder; refuse a problem whose number of classes is open."""
        if problem.classes is None:
            raise SteradError(
                "pfc needs the number of classes beforehand, as its directions cannot grow: "
                "declare the classes, or use another method, er say"
            )
        encoder = problem.encoder
        if config.preactivation:
            encoder = PREACTIVATED.get(encoder, encoder)
        super().__init__(config, replace(problem, encoder=encoder))

    def first_outputs(self) -> int:
        """Return the dimensions of the simplex: one fewer than classes, but no fewer than two."""
        return max(2, super().first_outputs() - 1)

    def make_network(self) -> Network:
        """Put the frozen simplex on the trainable head."""
        network = super().make_network()
        vertices = regular_simplex(super().first_outputs(), network.outputs)
        network.head = nn.Sequential(network.head, frozen_layer(vertices))
        return network

    def widen(self, outputs: int) -> None:
        """Refuse to grow."""
        raise SteradError(
            f"the fixed simplex of pfc has {self.network.outputs} directions and cannot grow to "
            f"{outputs}: declare all classes beforehand"
        )
