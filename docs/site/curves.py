"""Accuracy curves of committed records as inline SVG in the colors of the page."""

from collections.abc import Mapping, Sequence
from html import escape
from statistics import fmean

from sterad.results.record import RunRecord

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 14, 44

Curve = Sequence[tuple[float, float, float, float]]
"""Share of the stream, lowest, mean and highest accuracy over seeds."""


def mean_curve(records: Sequence[RunRecord]) -> Curve:
    """Return the accuracy on seen classes along the stream, over records of several seeds."""
    points: dict[int, list[tuple[float, float]]] = {}
    for record in records:
        moments = [moment for moment in record.moments if moment.anytime] or record.moments
        for number, moment in enumerate(moments):
            share = moment.samples / record.stream.samples
            points.setdefault(number, []).append((share, moment.accuracy))
    return [
        (fmean(x for x, _ in seeds), *_extent([y for _, y in seeds])) for seeds in points.values()
    ]


def _extent(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values), fmean(values), max(values)


def draw_curves(curves: Mapping[str, Curve], title: str) -> str:
    """Return a figure of one line per name; bands reach from the lowest to the highest seed."""
    highest = max(y for curve in curves.values() for *_, y in curve)
    top = next(limit for limit in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if highest <= limit)
    parts = [_axes(top)]
    for number, (name, curve) in enumerate(curves.items()):
        parts.append(_line(curve, top, number, name))
    parts.append(_legend(list(curves)))
    return (
        f'<figure class="figure"><svg viewBox="0 0 {WIDTH} {HEIGHT + 24}" role="img" '
        f'aria-label="{escape(title)}" class="curves">{"".join(parts)}</svg>'
        f"<figcaption>{escape(title)}</figcaption></figure>"
    )


def _position(x: float, y: float, top: float) -> tuple[float, float]:
    across = LEFT + x * (WIDTH - LEFT - RIGHT)
    return round(across, 1), round(HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM), 1)


def _axes(top: float) -> str:
    parts = []
    for step in range(5):
        y = top * step / 4
        left, height = _position(0, y, top)
        parts.append(f'<path class="grid" d="M{left} {height}H{WIDTH - RIGHT}"/>')
        label = f"{100 * y:.0f} %"
        parts.append(f'<text x="{left - 6}" y="{height + 4}" class="left">{label}</text>')
    for share in (0, 0.25, 0.5, 0.75, 1):
        across, base = _position(share, 0, top)
        anchor = "end" if share == 1 else "middle"
        parts.append(
            f'<text x="{across}" y="{base + 18}" text-anchor="{anchor}">{100 * share:.0f} %</text>'
        )
    middle, base = _position(0.5, 0, top)
    label = "share of the stream"
    return "".join(parts) + f'<text x="{middle}" y="{base + 36}" class="middle">{label}</text>'


def _line(curve: Curve, top: float, number: int, name: str) -> str:
    lower = [_position(x, low, top) for x, low, _, _ in curve]
    upper = [_position(x, high, top) for x, _, _, high in curve]
    middle = [_position(x, mean, top) for x, _, mean, _ in curve]
    band = "L".join(f"{x} {y}" for x, y in [*upper, *reversed(lower)])
    line = "L".join(f"{x} {y}" for x, y in middle)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5"/>' for x, y in middle)
    label = f"<title>{escape(name)}</title>"
    return (
        f'<g class="line line-{number}">{label}<path class="band" d="M{band}Z"/>'
        f'<path class="mean" d="M{line}"/>{dots}</g>'
    )


def _legend(names: Sequence[str]) -> str:
    parts, across = [], LEFT
    for number, name in enumerate(names):
        y = HEIGHT + 12
        parts.append(
            f'<g class="line line-{number}"><path class="mean" d="M{across} {y}h22"/></g>'
            f'<text x="{across + 28}" y="{y + 4}">{escape(name)}</text>'
        )
        across += 42 + 7 * len(name)
    return "".join(parts)
