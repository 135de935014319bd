"""Which protocols may carry a claim: those whose best method is clearly above the control.

The control learns no representation: random features of the raw pixels and a closed form. Where
it is as accurate as the methods, these have learned nothing that a difference between them could
be about.
"""

from collections.abc import Sequence
from typing import Any

from sterad_reproduction.claims import Comparison
from sterad_reproduction.numbers import Result, standard_errors
from sterad_reproduction.protocol import without_method

CONTROL = "randumb"
UPPER_BOUND = "joint"
"""Trains offline on all images; it does not compete."""
MIN_POINTS = 5.0
"""Percentage points by which a method that is clearly above the control exceeds it: a penalty and a
width of the kernel chosen on held-out images gain the control up to 3.6 points."""
MIN_STANDARD_ERRORS = 2.0


def find_obstacle(comparisons: Sequence[Comparison], results: Sequence[Result]) -> str:
    """Return why these comparisons carry no claim; empty if they may carry one.

    results: those of all runs, with controls on the same images in the same order.
    """
    sides = [side for one in comparisons for side in (one.better, one.worse)]
    protocols = {frozenset(without_method(side.settings).items()): side for side in sides}
    found = (_find_obstacle(protocol, side, results) for protocol, side in protocols.items())
    return next(filter(None, found), "")


def _find_obstacle(protocol: frozenset[Any], side: Result, results: Sequence[Result]) -> str:
    where = f"{side.settings['dataset.name']}, {side.settings['stream.name']}"
    of_control = [
        result
        for result in results
        if result.settings["method.name"] == CONTROL and _data(result) == _data(side)
    ]
    if not of_control:
        return f"no control was run on {where}"
    control = max(of_control, key=lambda result: result.mean)
    best = max(
        (
            result
            for result in results
            if result.settings["method.name"] not in (CONTROL, UPPER_BOUND)
            and frozenset(without_method(result.settings).items()) == protocol
        ),
        key=lambda result: result.mean,
    )
    if is_clearly_above(best, control):
        return ""
    name = best.settings["method.name"]
    return f"on {where} the best method, {name}, has {best.text}, and the control {control.text}"


def is_clearly_above(result: Result, control: Result) -> bool:
    """Return whether a result exceeds the control by 5 points and two standard errors.

    >>> one = Result({}, 33.0, None, 1)
    >>> [is_clearly_above(one, Result({}, mean, 0.3, 2)) for mean in (24.3, 29.0)]
    [True, False]
    """
    errors = standard_errors(result, control)
    is_beyond_noise = errors is None or errors >= MIN_STANDARD_ERRORS
    return result.mean - control.mean >= MIN_POINTS and is_beyond_noise


def _data(result: Result) -> dict[str, Any]:
    return {k: v for k, v in result.settings.items() if k.startswith(("dataset.", "stream."))}
