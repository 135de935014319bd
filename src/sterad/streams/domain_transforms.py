"""Transformations of the stream itself, such as rotation: one for all images of a domain.

The random views that a method trains on are made later, by sterad.views.

Rotated and permuted images are the domains of D. Lopez-Paz and M. Ranzato, "Gradient Episodic
Memory", 2017, https://arxiv.org/abs/1706.08840, and I. Goodfellow et al., "An Empirical
Investigation of Catastrophic Forgetting", 2013, https://arxiv.org/abs/1312.6211.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.seeds import generator


@dataclass(frozen=True)
class DomainTransform(ABC):
    """A transformation of every image of a domain, determined by its fields."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Return x: (n, c, h, w) in [0, 1] transformed, in the same shape and range."""

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the fields, for JSON.

        >>> Rotation(36.0).to_dict()
        {'name': 'rotation', 'degrees': 36.0}
        """
        return {"name": type(self).__name__.lower(), **dataclasses.asdict(self)}


@dataclass(frozen=True)
class Rotation(DomainTransform):
    """Rotation about the center; pixels from outside the image are black."""

    degrees: float
    """Angle, counterclockwise."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return the images rotated: exactly by quarter turns, bilinearly by other angles.

        A rectangle keeps its height and width, so that its ends leave the image.
        """
        quarters, rest = divmod(self.degrees, 90)
        height, width = x.shape[2:]
        if rest == 0 and (height == width or quarters % 2 == 0):
            return torch.rot90(x, int(quarters), (2, 3))
        angle = math.radians(self.degrees)
        cosine, sine = math.cos(angle), math.sin(angle)
        # Coordinates are from -1 to 1 along each axis, whatever its length.
        turn = [[cosine, -sine * (height / width), 0], [sine * (width / height), cosine, 0]]
        affine = x.new_tensor(turn).expand(len(x), 2, 3)
        grid = F.affine_grid(affine, list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False).clamp_(0, 1)


@dataclass(frozen=True)
class Permutation(DomainTransform):
    """A permutation of the pixels, the same for every image and channel."""

    key: int
    """Seed of the permutation; 0 is the identity."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return x: (n, c, h, w), or vectors (n, d), with permuted positions."""
        if self.key == 0:
            return x
        flat = x.flatten(2) if x.ndim == 4 else x
        places = _permutation(self.key, flat.shape[-1]).to(x.device)
        return flat.index_select(-1, places).reshape(x.shape)


@lru_cache(maxsize=64)
def _permutation(key: int, count: int) -> Tensor:
    return torch.randperm(count, generator=generator(key, "permutation"))


@dataclass(frozen=True)
class Brightness(DomainTransform):
    """Multiplication of all pixels by a factor."""

    factor: float
    """Factor of every pixel; results are clipped at white."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return the images brighter or darker."""
        return (x * self.factor).clamp_(0, 1)


@dataclass(frozen=True)
class Color(DomainTransform):
    """Rotation of the colors about the gray axis of RGB; grays do not change."""

    turns: float
    """Angle in turns; a third maps red to green, green to blue and blue to red."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return x: (n, 3, h, w) with rotated colors."""
        cosine, sine = math.cos(math.tau * self.turns), math.sin(math.tau * self.turns)
        own = cosine + (1 - cosine) / 3
        before, after = (1 - cosine) / 3 + sine / 3**0.5, (1 - cosine) / 3 - sine / 3**0.5
        turn = [[own, after, before], [before, own, after], [after, before, own]]
        return torch.einsum("ij,njhw->nihw", x.new_tensor(turn), x).clamp_(0, 1)


TRANSFORMS: dict[str, type[DomainTransform]] = {
    one.__name__.lower(): one for one in (Rotation, Permutation, Brightness, Color)
}
"""By name. Names are part of stream digests, so `color` keeps its spelling."""


def from_dict(values: Mapping[str, Any]) -> DomainTransform:
    """Return the transformation of a dictionary made by `to_dict`.

    >>> from_dict({"name": "rotation", "degrees": 36.0})
    Rotation(degrees=36.0)
    """
    fields = dict(values)
    name = fields.pop("name")
    if name not in TRANSFORMS:
        raise SteradError(f"unknown transformation {name!r}: choose {', '.join(TRANSFORMS)}")
    return TRANSFORMS[name](**fields)
