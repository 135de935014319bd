"""The cost of each method beside its accuracy, and a layout that compares at equal cost only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from sterad.errors import SteradError
from sterad.report.figures.cost import front_of
from sterad.report.section import methods_by_setting
from sterad.report.text import format_quantity
from sterad.results.grouping import Label, Layout
from sterad.results.record import RunRecord
from sterad.results.statistics import Summary, summarize

EQUAL_COST_FACTOR = 1.1
"""Costs up to this multiple of the lowest one of a band count as equal."""


@dataclass(frozen=True)
class CostRow:
    """Means over the seeds of one method in one setting."""

    setting: str
    method: str
    accuracy: Summary
    """Final average accuracy."""
    pixels: float
    """Pixels per stream batch."""
    multiply_adds: float
    """Multiply-adds per stream batch."""
    state_bytes: float
    seconds: float
    is_on_front: bool
    """Whether no method of the setting is at least as accurate at no higher cost in pixels, except
    the upper bound."""


def cost_rows(layout: Layout) -> tuple[CostRow, ...]:
    """Return a row for each cell whose pixels were counted, the cheapest of a setting first."""
    rows: list[CostRow] = []
    for setting, methods in methods_by_setting(layout):
        points = {
            index: (_mean_pixels(records), fmean(r.final_average_accuracy for r in records))
            for index, (_, records) in enumerate(methods)
            if records and all(record.cost is not None for record in records)
        }
        front = set(front_of(methods, points))
        for index in sorted(points, key=lambda index: points[index]):
            name, records = methods[index]
            rows.append(_cost_row(setting, name, records, index in front))
    return tuple(rows)


def _cost_row(
    setting: str, method: str, records: Sequence[RunRecord], is_on_front: bool
) -> CostRow:
    return CostRow(
        setting,
        method,
        summarize([record.final_average_accuracy for record in records]),
        pixels=fmean(record.pixels_per_batch for record in records),
        multiply_adds=fmean(record.multiply_adds_per_batch for record in records),
        state_bytes=fmean(record.state_bytes for record in records),
        seconds=fmean(record.seconds for record in records),
        is_on_front=is_on_front,
    )


def choose_counted(records: Sequence[RunRecord]) -> tuple[list[RunRecord], list[str]]:
    """Return the records whose pixels were counted, and a sentence for each other one."""
    counted = [record for record in records if record.cost is not None]
    if records and not counted:
        raise SteradError(
            f"none of the {len(records)} records has the pixels of its training, which "
            "--equal-cost compares: train the runs again with this version, or omit --equal-cost"
        )
    sentences = [
        f"{record.id}: its record has no pixels, which --equal-cost compares: train it again"
        for record in records
        if record.cost is None
    ]
    return counted, sentences


def split_by_cost(layout: Layout) -> Layout:
    """Return the layout with a column for each band of equal cost, the cheapest first.

    Tests and marks then compare only methods of one band. Methods without a network pass no pixels.
    """
    columns: list[Label] = []
    cells: dict[tuple[int, int], tuple[RunRecord, ...]] = {}
    for column, label in enumerate(layout.columns):
        costs = {
            row: _mean_pixels(layout.cell(row, column))
            for row in range(len(layout.rows))
            if layout.cell(row, column)
        }
        for band in find_bands(costs):
            cells |= {(row, len(columns)): layout.cell(row, column) for row in band}
            text = _describe_band([costs[row] for row in band])
            columns.append(Label((*label.parts, text)))
    return replace(layout, columns=tuple(columns), cells=cells)


def find_bands(costs: dict[int, float]) -> list[list[int]]:
    """Return the keys of costs in bands; each starts with the lowest cost that is left.

    >>> find_bands({0: 100, 1: 240, 2: 109, 3: 115, 4: 0})
    [[4], [0, 2], [3], [1]]
    """
    bands: list[list[int]] = []
    for key in sorted(costs, key=lambda key: costs[key]):
        if bands and costs[key] <= EQUAL_COST_FACTOR * costs[bands[-1][0]]:
            bands[-1].append(key)
        else:
            bands.append([key])
    return bands


def _mean_pixels(records: Sequence[RunRecord]) -> float:
    return fmean(record.pixels_per_batch for record in records)


def _describe_band(costs: Sequence[float]) -> str:
    """Return the range of costs of a band as text, in pixels per batch."""
    low, high = (format_quantity(cost) for cost in (min(costs), max(costs)))
    return f"{low} pixels" if low == high else f"{low} to {high} pixels"
