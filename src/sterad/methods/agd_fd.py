"""AGD-FD: fixed directions under the angular Gaussian law; see `fixed_directions`."""

from sterad.methods.base.learner import METHODS
from sterad.methods.fixed_directions import FixedDirections


@METHODS.register("agd-fd")
class AngularGaussianFixedDirections(FixedDirections):
    """Fixed directions under the angular Gaussian law."""
