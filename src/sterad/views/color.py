"""Colours: brightness, contrast, saturation, hue and grey as PIL defines them, batched.

Every operator takes x: (n, c, h, w) in [0, 1] with c = 3 or 1 and one number per image, (n,), and
returns values in [0, 1]. An image of one channel has no colour: saturation, hue and grey leave it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.views.choice import choose, draw_chosen, per_image

LUMA = (0.299, 0.587, 0.114)


@dataclass(frozen=True)
class Jitter:
    """What the four operators do to each image, (n,) each, and in which order.

    Factors of 1 and a hue of 0 leave an image as it is, but for rounding.
    """

    brightness: Tensor
    contrast: Tensor
    saturation: Tensor
    hue: Tensor
    """In turns of the colour circle."""
    order: tuple[str, ...]
    """One order for the whole batch."""


def draw_jitter(
    n: int, rng: torch.Generator, strength: float = 0.4, turn: float = 0.1, probability: float = 0.8
) -> Jitter:
    """Draw factors in 1 ± strength, hues in ± turn, and one order of the four for the batch.

    Images that are not chosen, each with its probability, get what leaves them as they are.
    """
    signed = torch.rand((4, n), generator=rng, device=rng.device) * 2 - 1
    signed *= draw_chosen(n, probability, rng)
    order = torch.randperm(4, generator=rng, device=rng.device).tolist()
    names = tuple(_OPERATORS)
    brightness, contrast, saturation = (1 + strength * signed[:3]).unbind()
    return Jitter(
        brightness, contrast, saturation, turn * signed[3], tuple(names[i] for i in order)
    )


def jitter(x: Tensor, drawn: Jitter) -> Tensor:
    """Apply the four operators in their drawn order."""
    for name in drawn.order:
        x = _OPERATORS[name](x, getattr(drawn, name))
    return x


def brightness(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply by the factor."""
    return (x * per_image(factor, x)).clamp_(0, 1)


def contrast(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the image's mean grey value; factor 1 keeps the image, 0 leaves the mean."""
    return _blend(x, grey_value(x.mean(dim=(2, 3), keepdim=True)), per_image(factor, x))


def saturation(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the grey image; factor 1 keeps the image, 0 leaves the grey one."""
    if _channels(x) == 1:
        return x
    return _blend(x, grey_value(x), per_image(factor, x))


def hue(x: Tensor, turns: Tensor) -> Tensor:
    """Turn every pixel's hue on the HSV circle; its value and saturation stay.

    A pixel's channels lie between its least and its largest one; how far up, a function of the hue
    h in sixths of a turn says: |h - 3| - 1 for red, 2 - |h - 2| for green, 2 - |h - 4| for blue,
    each cut to [0, 1].
    """
    if _channels(x) == 1:
        return x
    most, least, sixths = _hue_of(x)
    sixths = sixths.add_(6 * per_image(turns, x))
    sixths = sixths.sub_((sixths / 6).floor_(), alpha=6)
    up = torch.cat([sixths - 3, sixths - 2, sixths - 4], dim=1).abs_()
    up[:, :1].sub_(1)
    up[:, 1:].neg_().add_(2)
    return torch.lerp(least, most, up.clamp_(0, 1))


def _hue_of(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the largest channel, the least, and the hue in sixths of a turn, from -1 to 5.

    The largest channel decides which formula holds. Interpolation by a weight of exactly 0 or 1
    picks it: several times faster than a branch per pixel.
    """
    red, green, blue = x[:, 0:1], x[:, 1:2], x[:, 2:3]
    most = torch.maximum(torch.maximum(red, green), blue)
    least = torch.minimum(torch.minimum(red, green), blue)
    # A grey pixel has no hue and needs none; the bound only keeps 0 / 0 away.
    spread = (most - least).clamp_(min=1e-12)
    not_red, not_green = (most - red).sign_(), (most - green).sign_()
    if_green, if_blue = (blue - red).add_(spread, alpha=2), (red - green).add_(spread, alpha=4)
    sixths = torch.lerp(green - blue, torch.lerp(if_green, if_blue, not_green), not_red)
    return most, least, sixths.div_(spread)


def grey(x: Tensor, chosen: Tensor) -> Tensor:
    """Give the chosen images their grey value in every channel."""
    if _channels(x) == 1:
        return x
    return choose(x, grey_value(x), chosen)


def grey_value(x: Tensor) -> Tensor:
    """Weigh the channels as the eye does, 0.299 red, 0.587 green, 0.114 blue; (n, 1, h, w)."""
    if _channels(x) == 1:
        return x
    red, green, blue = x[:, 0:1], x[:, 1:2], x[:, 2:3]
    return (red * LUMA[0]).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2])


def _blend(x: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (x * factor).add_(other * (1 - factor)).clamp_(0, 1)


_OPERATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "brightness": brightness,
    "contrast": contrast,
    "saturation": saturation,
    "hue": hue,
}


def _channels(x: Tensor) -> int:
    if x.shape[1] not in (1, 3):
        raise SteradError(
            f"images of {x.shape[1]} channels have no colours to change: "
            "give 1 or 3 channels, or choose the partial recipe"
        )
    return x.shape[1]
