"""The view of a search: the trials as they end, time left, and the best of them."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.table import Table

from sterad.cli.study_view import study_view
from sterad.results.statistics import summarize

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from sterad.experiments.search.searching import Search

SHOWN = 10
"""Trials in the table of the best."""


class SearchView:
    """The view of a study in which trials stand for runs."""

    def __init__(self, search: "Search") -> None:
        """Say what is searched."""
        self.search, plan = search, search.plan
        missing, size = search.missing(), plan.space.size
        size_said = "endless" if size == float("inf") else f"{size:.0f} points"
        seeds = ", ".join(map(str, plan.seeds))
        print(
            f"{plan.sampler} in a space of {size_said} ({_fields(search)}), up to "
            f"{plan.trials} trials, each on seeds {seeds}, tested on {plan.tested}; "
            f"kept in {search.place}",
            file=sys.stderr,
        )
        self.missing, seeds_each = missing, len(plan.seeds)
        self.view = study_view(plan.name, plan.trials * seeds_each, missing * seeds_each)
        self.failed = 0

    def __enter__(self) -> Self:
        """Begin to draw."""
        self.view.__enter__()
        self.view.missing = self.missing  # from here on trials are counted, not runs
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last picture."""
        self.view.__exit__()

    def heard(self, run: str, event: Mapping[str, Any]) -> None:
        """Take an event of a run."""
        self.view.heard(run, event)

    def ended(self, run: str) -> None:
        """Take the end of a run."""
        self.view.running.pop(run, None)

    def told(self, trial: "FrozenTrial") -> None:
        """Say what came of a trial."""
        view, values = self.view, self.search.plan.space.values(trial.params)
        view.done += 1
        what = {
            "COMPLETE": lambda: f"{trial.value:.2%}",
            "PRUNED": lambda: f"stopped early, {trial.user_attrs.get('error', 'below the median')}",
        }.get(trial.state.name, lambda: f"failed: {trial.user_attrs.get('error')}")()
        if trial.state.name == "COMPLETE" and trial.value is not None:
            name = f"trial {trial.number}"
            view.best = max(view.best or (trial.value, name), (trial.value, name))
        self.failed += trial.state.name == "FAIL"
        view.failed = self.failed
        view.say(
            f"[{view.done}/{view.missing}] trial {trial.number}: {what} with {shown(values)}; "
            f"{view.left()}"
        )


def print_best(search: "Search") -> "FrozenTrial":
    """Print the best complete trials and return the first of them."""
    best = search.best()
    counted = search.counted()
    table = Table(title=f"{counted['complete']} trials, {counted['stopped']} stopped early")
    names = [one.name for one in search.plan.space.dimensions]
    for name in ("trial", "accuracy", *names):
        table.add_column(name, justify="right")
    for trial in search.ranked()[:SHOWN]:
        values = search.plan.space.values(trial.params)
        cells = [_short(values.get(name, "-")) for name in names]
        summary = summarize(trial.user_attrs["finals"])
        spread = "" if summary.std is None else f" ± {summary.std:.2%}"
        table.add_row(str(trial.number), f"{summary.mean:.2%}{spread}", *cells)
    Console().print(table)
    return best


def shown(values: Mapping[str, Any]) -> str:
    """Return values as `name = value`.

    >>> shown({"lr": 0.00010000000000001, "augmentation": "full"})
    'lr = 0.0001, augmentation = full'
    """
    return ", ".join(f"{name} = {_short(value)}" for name, value in values.items())


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _fields(search: "Search") -> str:
    return ", ".join(one.name for one in search.plan.space.dimensions)
