"""Augmentations, registered by name: full, partial, none."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.registry import Registry
from sterad.views import color, geometry
from sterad.views.geometry import draw_chosen


@dataclass(frozen=True)
class Augmentation(ABC):
    """A random augmentation of a batch. A call returns one view; subclasses implement `augment`."""

    flip: bool = True
    """Flip each image left to right with probability 0.5; not for digits and letters."""

    takes_vectors: ClassVar[bool] = False
    """Whether `augment` also takes feature vectors, x: (n, d); otherwise they are not changed."""

    def changes(self, x: Tensor) -> bool:
        """Return whether a view of x differs from x."""
        return x.ndim == 4 or self.takes_vectors

    def __call__(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of x: (n, c, h, w) floats in [0, 1], detached; x is not modified.

        Feature vectors, x: (n, d), are returned unchanged unless `takes_vectors` is set. The
        generator may be on another device than x.
        """
        if x.ndim == 2 and not self.takes_vectors:
            return x
        if x.ndim not in (2, 4) or not x.is_floating_point():
            raise SteradError(
                f"cannot make a view of {x.dtype} values of shape {tuple(x.shape)}: "
                "give float images (n, channels, height, width) or float vectors (n, d)"
            )
        with torch.no_grad():
            return self.augment(x, rng)

    @abstractmethod
    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""


AUGMENTATIONS: Registry[type[Augmentation]] = Registry("augmentation", "sterad.augmentations")


@AUGMENTATIONS.register("full")
@dataclass(frozen=True)
class Full(Augmentation):
    """Resized crop, flip, color jitter of four images in five, gray for one in five."""

    min_crop: float = 0.2
    """Minimum area of a crop, as a fraction of the image."""

    def __post_init__(self) -> None:
        if not 0 < self.min_crop <= 1:
            raise SteradError(
                f"min_crop {self.min_crop} is not a fraction of the image area: "
                "give a number in (0, 1], 0.2 as published"
            )

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""
        n, _, h, w = x.shape
        boxes = geometry.draw_boxes(n, h, w, rng, self.min_crop)
        x = geometry.resized_crop(x, boxes, draw_chosen(n, 0.5, rng) if self.flip else None)
        x = color.jitter(x, color.draw_jitter(n, rng))
        return color.gray(x, draw_chosen(n, 0.2, rng))


@AUGMENTATIONS.register("partial")
@dataclass(frozen=True)
class Partial(Augmentation):
    """Zero padding, a crop of the original size at a random offset, and a flip.

    The padding is 4 pixels as published, or a quarter of the side for images below 16 pixels.
    """

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""
        pad = min(4, min(x.shape[2:]) // 4)
        offsets = geometry.draw_offsets(len(x), pad, rng)
        if not self.flip:
            return geometry.padded_crop(x, offsets, pad)
        return geometry.mirrored_crop(x, offsets, pad, draw_chosen(len(x), 0.5, rng))


@AUGMENTATIONS.register("none")
@dataclass(frozen=True)
class NoAugmentation(Augmentation):
    """The unchanged images."""

    def changes(self, x: Tensor) -> bool:
        """Return False: no view differs from x."""
        return False

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return x unchanged."""
        return x
