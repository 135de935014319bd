"""Color operators: brightness, contrast, saturation, hue and gray as defined by PIL, batched.

Every operator takes x: (n, c, h, w) in [0, 1] with c = 3 or 1 and one number per image, (n,), and
returns values in [0, 1]. Saturation, hue and gray do not change images of one channel.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.views.geometry import choose, draw_chosen, per_image

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in the gray value."""


def draw_jitter(
    n: int,
    rng: torch.Generator,
    strength: float = 0.4,
    max_hue: float = 0.1,
    probability: float = 0.8,
) -> dict[str, Tensor]:
    """Draw the parameters of the four operators, (n,) each, in the order in which to apply them.

    Factors are in 1 ± strength, hues in ± max_hue turns. Images that are not chosen with the
    probability get factors of 1 and a hue of 0, which do not change them except for rounding. The
    batch has one random order.
    """
    signed = torch.rand((4, n), generator=rng, device=rng.device) * 2 - 1
    signed *= draw_chosen(n, probability, rng)
    order = torch.randperm(4, generator=rng, device=rng.device).tolist()
    parameters = [*(1 + strength * signed[:3]), max_hue * signed[3]]
    names = list(_OPERATORS)
    return {names[i]: parameters[i] for i in order}


def jitter(x: Tensor, drawn: Mapping[str, Tensor]) -> Tensor:
    """Apply the operators with the drawn parameters, in their order."""
    for name, parameter in drawn.items():
        x = _OPERATORS[name](x, parameter)
    return x


def brightness(x: Tensor, factor: Tensor) -> Tensor:
    """Multiply by the factor."""
    return (x * per_image(factor, x)).clamp_(0, 1)


def contrast(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the image's mean gray value; factor 1 keeps the image, 0 leaves the mean."""
    return _blend(x, gray_value(x.mean(dim=(2, 3), keepdim=True)), per_image(factor, x))


def saturation(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the gray image; factor 1 keeps the image, 0 leaves the gray one."""
    if _channels(x) == 1:
        return x
    return _blend(x, gray_value(x), per_image(factor, x))


def hue(x: Tensor, turns: Tensor) -> Tensor:
    """Rotate the hue of every pixel on the HSV circle; value and saturation do not change.

    Each channel of a pixel is interpolated between its smallest and its largest one. The weight is
    a function of the hue h in sixths of a turn: |h - 3| - 1 for red, 2 - |h - 2| for green,
    2 - |h - 4| for blue, each clipped to [0, 1].
    """
    if _channels(x) == 1:
        return x
    largest, smallest, sixths = _hue_of(x)
    sixths = sixths.add_(6 * per_image(turns, x))
    sixths = sixths.sub_((sixths / 6).floor_(), alpha=6)
    up = torch.cat([sixths - 3, sixths - 2, sixths - 4], dim=1).abs_()
    up[:, :1].sub_(1)
    up[:, 1:].neg_().add_(2)
    return torch.lerp(smallest, largest, up.clamp_(0, 1))


def _hue_of(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the largest channel, the smallest, and the hue in sixths of a turn, from -1 to 5.

    The largest channel determines the formula. It is selected by interpolation with a weight of
    exactly 0 or 1, which is several times faster than a branch per pixel.
    """
    red, green, blue = x[:, 0:1], x[:, 1:2], x[:, 2:3]
    largest = torch.maximum(torch.maximum(red, green), blue)
    smallest = torch.minimum(torch.minimum(red, green), blue)
    # The hue of a gray pixel has no effect; the bound only avoids 0 / 0.
    spread = (largest - smallest).clamp_(min=1e-12)
    not_red, not_green = (largest - red).sign_(), (largest - green).sign_()
    if_green, if_blue = (blue - red).add_(spread, alpha=2), (red - green).add_(spread, alpha=4)
    sixths = torch.lerp(green - blue, torch.lerp(if_green, if_blue, not_green), not_red)
    return largest, smallest, sixths.div_(spread)


def gray(x: Tensor, chosen: Tensor) -> Tensor:
    """Replace every channel of the chosen images by their gray value."""
    if _channels(x) == 1:
        return x
    return choose(x, gray_value(x), chosen)


def gray_value(x: Tensor) -> Tensor:
    """Return the perceived brightness, 0.299 red + 0.587 green + 0.114 blue: (n, 1, h, w)."""
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
            f"color operators do not support images of {x.shape[1]} channels: "
            "give 1 or 3 channels, or choose the partial augmentation"
        )
    return x.shape[1]
