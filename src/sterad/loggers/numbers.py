"""Which numbers of an event are curves for those who draw them."""

from collections.abc import Mapping
from typing import Any

CURVES = {
    "progress": ("loss",),
    "evaluation": ("accuracy", "seen"),
    "end": ("final_average_accuracy", "anytime_accuracy"),
}


def numbers(event: Mapping[str, Any]) -> dict[str, float]:
    """Return names and values, with an accuracy for each task that has been met.

    >>> numbers({"event": "evaluation", "accuracy": 0.5, "seen": 4, "cells": (0.5, None)})
    {'accuracy': 0.5, 'seen': 4, 'accuracy/1': 0.5}
    >>> numbers({"event": "checkpoint", "step": 7})
    {}
    """
    named = {name: event[name] for name in CURVES.get(event["event"], ())}
    cells = enumerate(event.get("cells", ()), start=1)
    named |= {f"accuracy/{task}": cell for task, cell in cells}
    return {name: value for name, value in named.items() if value is not None}
