"""Recipes: which views of a batch of images are shown, by name."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.registry import Registry
from sterad.views import colour, crop
from sterad.views.choice import draw_chosen


@dataclass(frozen=True)
class Recipe(ABC):
    """A way to show images: call it once for each view that is wanted."""

    flip: bool = True
    """Mirror every second image left to right; not for digits and letters."""

    takes_vectors: ClassVar[bool] = False
    """Whether `show` also takes feature vectors, x: (n, d); otherwise these have no views."""

    def changes(self, x: Tensor) -> bool:
        """Return whether a view of x differs from x."""
        return x.ndim == 4 or self.takes_vectors

    def __call__(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of x: (n, c, h, w) floats in [0, 1], without graph; x is left alone.

        Feature vectors, x: (n, d), come back as they are unless the recipe is made for them. The
        generator may live on another device than x.
        """
        if x.ndim == 2 and not self.takes_vectors:
            return x
        if x.ndim not in (2, 4) or not x.is_floating_point():
            raise SteradError(
                f"a view was asked of {x.dtype} values of shape {tuple(x.shape)}: "
                "give float images (n, channels, height, width) or float vectors (n, d)"
            )
        with torch.no_grad():
            return self.show(x, rng)

    @abstractmethod
    def show(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""


RECIPES: Registry[type[Recipe]] = Registry("recipe", "sterad.recipes")


@RECIPES.register("full")
@dataclass(frozen=True)
class Full(Recipe):
    """Resized crop, flip, colour jitter of four images in five, grey for one in five."""

    min_crop: float = 0.2
    """Least area of a crop, as a fraction of the image's."""

    def __post_init__(self) -> None:
        if not 0 < self.min_crop <= 1:
            raise SteradError(
                f"min_crop is {self.min_crop}, but a crop's least area is a fraction of the "
                "image's: choose it in (0, 1], 0.2 as published"
            )

    def show(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""
        n, _, h, w = x.shape
        boxes = crop.draw_boxes(n, h, w, rng, self.min_crop)
        x = crop.resized_crop(x, boxes, draw_chosen(n, 0.5, rng) if self.flip else None)
        x = colour.jitter(x, colour.draw_jitter(n, rng))
        return colour.grey(x, draw_chosen(n, 0.2, rng))


@RECIPES.register("partial")
@dataclass(frozen=True)
class Partial(Recipe):
    """A border of zeros, a crop back to size from a random offset, and a flip.

    The border is 4 pixels as published, and a quarter of the side for images below 16 pixels.
    """

    def show(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""
        pad = min(4, min(x.shape[2:]) // 4)
        offsets = crop.draw_offsets(len(x), pad, rng)
        if not self.flip:
            return crop.padded_crop(x, offsets, pad)
        return crop.mirrored_crop(x, offsets, pad, draw_chosen(len(x), 0.5, rng))


@RECIPES.register("none")
@dataclass(frozen=True)
class Nothing(Recipe):
    """The images themselves."""

    def changes(self, x: Tensor) -> bool:
        """Return that nothing is changed."""
        return False

    def show(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return the images x: (n, c, h, w)."""
        return x
