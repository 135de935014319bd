"""Runs under other protocols than the paper's: listed with what differs, never held against it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sterad.paper.claims import method_differences
from sterad.paper.numbers import numbers
from sterad.paper.points import Point, points_of
from sterad.paper.protocol import around, differences, expected, nearest, raw_protocol
from sterad.results.record import RunRecord

MOST = 8
"""Differences of methods that are written out."""


@dataclass(frozen=True)
class OtherProtocol:
    """Runs that share everything around their methods, and are no number of the paper."""

    where: str
    """Dataset and stream."""
    methods: tuple[str, ...]
    runs: int
    differs: tuple[str, ...]
    """What is not as in the nearest number of the paper; of methods, what is not as released."""


def other_protocols(records: Iterable[RunRecord]) -> tuple[OtherProtocol, ...]:
    """Return the groups of runs that no number of the paper belongs to."""
    papers = [expected(number.settings) for number in numbers()]
    known = {frozenset(settings.items()) for settings in papers}
    groups: dict[frozenset[Any], list[Point]] = {}
    for point in points_of(records):
        if frozenset(point.settings.items()) not in known:
            groups.setdefault(frozenset(around(point.settings).items()), []).append(point)
    places = [around(settings) for settings in papers]
    found = [_described(points, places) for points in groups.values()]
    return tuple(sorted(found, key=lambda one: (one.where, one.differs)))


def _described(points: list[Point], places: list[dict[str, Any]]) -> OtherProtocol:
    settings = points[0].settings
    apart = nearest(differences(around(settings), place) for place in places)
    fields = sorted({text for point in points for text in _fields(point)})
    more = (f"and {len(fields) - MOST} more",) if len(fields) > MOST else ()
    return OtherProtocol(
        where=f"{settings.get('dataset.name')}, {settings.get('stream.name')}",
        methods=tuple(sorted({str(point.settings.get("method.name")) for point in points})),
        runs=sum(point.n for point in points),
        differs=(*(one.text for one in apart), *fields[:MOST], *more),
    )


def _fields(point: Point) -> list[str]:
    name = point.settings.get("method.name")
    if name not in raw_protocol()["method"]:
        return [f"{name} is not in the paper"]
    return [f"{name} {one.text}" for one in method_differences(point)]
