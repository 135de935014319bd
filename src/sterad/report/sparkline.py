"""Sparklines: a curve in one line of text."""

from bisect import bisect_right
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None]) -> str:
    """Return a character per fraction, from the lowest block at 0 to the full one at 1.

    The scale is fixed, so that lines of different runs can be compared. Missing values are blank.

    >>> sparkline([0.0, 0.5, None, 1.0])
    '▁▅ █'
    """
    return "".join(" " if value is None else _block(value) for value in values)


def _block(fraction: float) -> str:
    return BLOCKS[int(min(len(BLOCKS) - 1, max(0, fraction * len(BLOCKS))))]


def resample(
    curve: Sequence[tuple[int, float | None]], width: int, total: int | None = None
) -> list[float | None]:
    """Return the values of a curve at the ends of `width` equal parts of 0 to `total`.

    A value holds from its position to the next one; before the first and more than a part after
    the last there is none.
    total: by default the last position of the curve.

    >>> resample([(25, 0.5), (100, 1.0)], 4)
    [0.5, 0.5, 0.5, 1.0]
    """
    if not curve:
        return [None] * width
    positions = [position for position, _ in curve]
    end = max(1, positions[-1] if total is None else total)
    ends = [end * part / width for part in range(1, width + 1)]
    found = [bisect_right(positions, position) - 1 for position in ends]
    return [
        curve[index][1] if index >= 0 and position < positions[-1] + end / width else None
        for position, index in zip(ends, found, strict=True)
    ]


def curve_line(curve: Sequence[tuple[int, float | None]], width: int, total: int = 0) -> str:
    """Return the sparkline of a curve over a stream of `total` images, `width` characters."""
    last = curve[-1][0] if curve else 0
    return sparkline(resample(curve, width, max(total, last)))
