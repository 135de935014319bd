"""AGD-FD: fixed directions under the angular Gaussian law, see `fixed_directions`."""

from sterad.methods.fixed_directions import FixedDirections
from sterad.methods.learner import METHODS
from sterad.sphere import AngularGaussian


@METHODS.register("agd-fd")
class AngularGaussianFixedDirections(FixedDirections):
    """Fixed directions under the angular Gaussian law."""

    law = AngularGaussian
