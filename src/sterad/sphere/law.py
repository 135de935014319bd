"""The base class of laws whose density increases with the cosine, and their registry."""

from typing import Self

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.registry import Registry, canonical_name
from sterad.sphere.fit import Fit
from sterad.sphere.newton import maximize
from sterad.sphere.rotational_law import RotationalLaw
from sterad.sphere.weighted_points import WeightedPoints
from sterad.torch_private import standard_gamma


class SphericalLaw(RotationalLaw):
    """The base of laws whose density increases with the cosine with the mean direction.

    Subclasses implement `log_kernel_at`, which is normalized: the density relative to the uniform
    law has mean 1 over the sphere, increases with the cosine and is 1 at concentration 0. They also
    implement `concentration_of` and, for samples, `sample_cosine`; see `sterad.testing.check_law`.
    mean_direction: (*batch, d) unit rows; concentration: (*batch), zero for the uniform law.
    Computations are in float64; for parameters on MPS, which has no float64, they run on the CPU,
    and sampling then needs a CPU generator.
    """

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return the concentration of a law with this `variance`."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The mean direction, at which the density is largest."""
        return self.mean_direction

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        return maximize(cls, data, **shape).as_fit(
            cls, data.count.reshape(data.batch_shape), data.points, **shape
        )


def draw_symmetric_beta(like: Tensor, p: int, generator: torch.Generator | None) -> Tensor:
    """Draw beta variables with both parameters p/2, in the shape and dtype of `like`.

    They are (1 - t)/2 for the cosine t of a uniform point in p + 1 dimensions with a fixed one.
    """
    half = torch.full_like(like, p / 2)
    first, second = standard_gamma(half, generator), standard_gamma(half, generator)
    return first / (first + second)


REQUIRED = ("log_kernel_at", "concentration_of")
"""What a law must define to be used in a loss; `sample_cosine` is needed for samples only."""


def _find_problem(law: type[SphericalLaw]) -> str | None:
    """Return why a class cannot be registered as a law."""
    if not (isinstance(law, type) and issubclass(law, SphericalLaw)):
        return "is no subclass of SphericalLaw: extend it"
    inherited = [name for name in REQUIRED if getattr(law, name) is getattr(SphericalLaw, name)]
    return f"does not define {', '.join(inherited)}: define each" if inherited else None


WITHOUT_LOSS = {
    "uniform": "has no direction",
    "watson": "is about an axis",
    "angular-central-gaussian": "is about axes",
    "general-angular-gaussian": "has a covariance (in agd-fd: covariance=shared)",
    "elliptically-symmetric-angular-gaussian": "has a covariance",
}
"""Other laws of this package, and why they are not functions of the cosine with a direction."""


class LawRegistry(Registry[type[SphericalLaw]]):
    """The laws that losses use by name."""

    def resolve(self, name: str) -> str:
        """Return the registered spelling; say why a law of this package is not among them."""
        reason = WITHOUT_LOSS.get(canonical_name(name)) if isinstance(name, str) else None
        if reason is not None and name not in self:
            raise SteradError(
                f"the law {name!r} {reason}, and a loss needs one that depends on the cosine with "
                f"the direction of a class: use one of {', '.join(self)}"
            )
        return super().resolve(name)


LAWS = LawRegistry("law", "sterad.laws", _find_problem)
