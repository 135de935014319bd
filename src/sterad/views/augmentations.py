"""Augmentations, registered by name: full, partial, noise, none."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from sterad.devices import to_device
from sterad.errors import SteradError
from sterad.registry import Registry
from sterad.seeds import use_generator
from sterad.validation import BelowOne, NonNegative, Range, Share, Views, check_fields
from sterad.views import color, geometry
from sterad.views.geometry import draw_chosen


@dataclass(frozen=True)
class Augmentation(ABC):
    """A random augmentation of a batch. A call returns one view; subclasses implement `augment`."""

    flip: bool = True
    """Flip images left to right; not for digits and letters."""
    flip_probability: Share = 0.5
    """Probability of a flip of each image, if there are any."""

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

    def draw_flips(self, n: int, rng: torch.Generator) -> Tensor | None:
        """Choose the images to flip: (n,) bool; None if images are not flipped."""
        return draw_chosen(n, self.flip_probability, rng) if self.flip else None

    @abstractmethod
    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""


AUGMENTATIONS: Registry[type[Augmentation]] = Registry("augmentation", "sterad.augmentations")


@AUGMENTATIONS.register("full")
@dataclass(frozen=True)
class Full(Augmentation):
    """Resized crop, flip, color jitter of four images in five, gray for one in five."""

    min_crop: Annotated[float, Range(0, 1, open_low=True)] = 0.2
    """Minimum area of a crop, as a fraction of the image."""
    color_jitter: Share = 0.4
    """Maximum relative change of brightness, contrast and saturation."""
    hue_jitter: Annotated[float, Range(0, 0.5)] = 0.1
    """Maximum rotation of the hue in turns."""
    jitter_probability: Share = 0.8
    """Probability of changed colors of an image."""
    gray_probability: Share = 0.2
    """Probability of a gray image."""

    def __post_init__(self) -> None:
        check_fields(self)

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""
        n, _, h, w = x.shape
        boxes = geometry.draw_boxes(n, h, w, rng, self.min_crop)
        x = geometry.resized_crop(x, boxes, self.draw_flips(n, rng))
        strengths = self.color_jitter, self.hue_jitter, self.jitter_probability
        x = color.jitter(x, color.draw_jitter(n, rng, *strengths))
        return color.gray(x, draw_chosen(n, self.gray_probability, rng))


@AUGMENTATIONS.register("partial")
@dataclass(frozen=True)
class Partial(Augmentation):
    """Zero padding, a crop of the original size at a random offset, and a flip.

    The padding is 4 pixels as published, or a quarter of the side for images below 16 pixels.
    """

    padding: Views = 4
    """Maximum shift in pixels; at most a quarter of the side is used."""

    def __post_init__(self) -> None:
        check_fields(self)

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""
        pad = min(self.padding, min(x.shape[2:]) // 4)
        offsets = geometry.draw_offsets(len(x), pad, rng)
        flips = self.draw_flips(len(x), rng)
        if flips is None:
            return geometry.padded_crop(x, offsets, pad)
        return geometry.mirrored_crop(x, offsets, pad, flips)


@AUGMENTATIONS.register("noise")
@dataclass(frozen=True)
class Noise(Augmentation):
    """Gaussian noise and dropped features, for feature vectors; images stay in [0, 1].

    Features that are kept are divided by the probability to be kept, so that their mean stays.
    """

    takes_vectors: ClassVar[bool] = True

    noise_std: NonNegative = 0.1
    """Standard deviation of the noise."""
    feature_dropout: BelowOne = 0.1
    """Probability of a feature that is set to 0."""

    def __post_init__(self) -> None:
        check_fields(self)

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of x: (n, d) or (n, c, h, w)."""
        noise = torch.randn(x.shape, generator=rng, device=rng.device, dtype=x.dtype)
        kept = torch.rand(x.shape, generator=rng, device=rng.device) >= self.feature_dropout
        scale = kept.to(x.dtype) / (1 - self.feature_dropout)
        view = (x + self.noise_std * to_device(noise, x.device)) * to_device(scale, x.device)
        return view.clamp_(0, 1) if x.ndim == 4 else view


@dataclass(frozen=True)
class Transform(Augmentation):
    """A user's function of a batch of inputs, (n, c, h, w) in [0, 1] or (n, d).

    It is called with torch's generator set to the one of the views, so that the seed decides what
    it draws from torch on the CPU.
    """

    takes_vectors: ClassVar[bool] = True

    function: Callable[[Tensor], Tensor] = torch.clone

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return the function's result; refuse one of another shape or dtype, or with NaN."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        with use_generator(rng):
            view = self.function(x.clone())  # it may work in place
        if not isinstance(view, Tensor):
            raise SteradError(
                f"the augmentation {name} returned {type(view).__name__}: return a tensor"
            )
        if view.shape != x.shape or view.dtype != x.dtype:
            raise SteradError(
                f"the augmentation {name} made {view.dtype} of shape {tuple(view.shape)} from "
                f"{x.dtype} of shape {tuple(x.shape)}: keep the shape and the dtype"
            )
        if not bool(view.isfinite().all()):
            raise SteradError(
                f"the augmentation {name} returned NaN or infinite values: return finite ones"
            )
        return view.detach()


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
