"""vMF-FD: fixed directions under the von Mises-Fisher law; see `fixed_directions`."""

from dataclasses import dataclass, field

from sterad.methods.base.learner import METHODS
from sterad.methods.fixed_directions import FixedDirections, FixedDirectionsConfig
from sterad.validation import OMIT_DEFAULT_FROM_ID, Positive


@dataclass(frozen=True)
class VonMisesFisherConfig(FixedDirectionsConfig):
    """The paper's settings, with its variance for this law."""

    law: str = field(default="von-mises-fisher", metadata=OMIT_DEFAULT_FROM_ID)
    variance: Positive = 0.14


@METHODS.register("vmf-fd")
class VonMisesFisherFixedDirections(FixedDirections):
    """Fixed directions under the von Mises-Fisher law."""

    Config = VonMisesFisherConfig
