"""vMF-FD: fixed directions under the von Mises-Fisher law, see `fixed_directions`."""

from dataclasses import dataclass

from sterad.methods.fixed_directions import FixedDirections, FixedDirectionsConfig
from sterad.methods.learner import METHODS
from sterad.sphere import VonMisesFisher
from sterad.validation import Positive


@dataclass(frozen=True)
class VonMisesFisherConfig(FixedDirectionsConfig):
    """The paper's settings with the variance that it found for this law."""

    variance: Positive = 0.14


@METHODS.register("vmf-fd")
class VonMisesFisherFixedDirections(FixedDirections):
    """Fixed directions under the von Mises-Fisher law."""

    Config = VonMisesFisherConfig
    law = VonMisesFisher
