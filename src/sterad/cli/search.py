"""`sterad search`: find the best values of a method, on images and seeds that no table reports."""

import dataclasses
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table

from sterad.cli.components import Request, RequestParser
from sterad.cli.help import option_name
from sterad.cli.options import check_out
from sterad.cli.study import ProgressView
from sterad.cli.train import OutputOptions
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig, RunSettings
from sterad.experiments.launchers import Local, check_data
from sterad.experiments.run import provenance
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.space import read_space
from sterad.experiments.tuned import Tuned, write_tuned
from sterad.optional_imports import require_extra
from sterad.report.text import format_quantity
from sterad.results.statistics import summarize
from sterad.threads import cores
from sterad.validation import Count, Seed, field_names

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from sterad.experiments.search.search import Search

MAX_PRINTED_TRIALS = 10
MAX_VALUE_COLUMNS = 8
"""More values are written as a text: the columns of a terminal would be too narrow."""


@dataclass(frozen=True)
class SearchOptions:
    """What is searched, and with how many trials."""

    sampler: Literal["grid", "tpe"] = "tpe"
    """Try every point of the space, or the points that TPE proposes."""
    trials: Count | None = None
    """Points to try, including those of earlier calls (default: the whole grid, or 50 with
    TPE)."""
    space: Path | None = None
    """A TOML file with lists and ranges in a table per method, or the name of one that ships with
    sterad, such as combinations (default: the paper's space)."""
    pixels: Count | None = None
    """Pixels through the network per stream batch that each point takes in a space of equal cost
    (default: those of the method with the given values)."""
    seeds: tuple[Seed, ...] = ()
    """Seeds of each point (default: 100 101 102, which no table reports, or the paper's 0 1 2 for
    test)."""
    tested_on: Literal["validation", "test"] = "validation"
    """Measure accuracy on training images that are held out (--validation, a tenth by default), or
    on the test images, as the paper did; test accuracies of the values found are then biased."""
    prune: bool = True
    """Run every trial to its end. By default a trial is stopped early if it is below the median of
    complete trials at the same evaluation."""
    storage: str | None = None
    """A file (default: search.journal beside the runs), or for several machines a database, such as
    postgresql+psycopg://USER:PASSWORD@HOST/NAME. Calls with the same storage share the search."""
    save_tuned: Path | None = None
    """Also write the best values into this .toml file of tuned values, replacing earlier values of
    the method."""


@dataclass(frozen=True)
class SearchOutput(OutputOptions):
    """Where the runs of a search are written."""

    out: Path = Path("searches")
    """Folder of all runs of searches, and of the values found."""


class SearchView(ProgressView):
    """Progress of a search; the title counts runs, all later lines count trials."""

    def __init__(self, search: "Search") -> None:
        self.space, self.plan = search.plan.space, search.plan
        plan = search.plan
        size = "infinite size" if self.space.ranges else f"{self.space.size:.0f} points"
        fields = ", ".join(dimension.name for dimension in self.space.dimensions)
        print(
            f"{plan.sampler} in a space of {size} ({fields}), up to {plan.trials} trials, each on "
            f"seeds {', '.join(map(str, plan.seeds))}, tested on {plan.test_data}; stored in "
            f"{search.storage_name}",
            file=sys.stderr,
        )
        if plan.budget is not None:
            pixels, adapted = format_quantity(plan.budget.pixels), plan.budget.adapted.name
            print(f"each with {pixels} pixels per batch, by its {adapted}", file=sys.stderr)
        missing, seeds = search.count_missing(), len(plan.seeds)
        done = (plan.trials - missing) * seeds
        super().__init__(f"{plan.name}: {plan.trials * seeds} runs, {done} done before", missing)

    def on_trial_end(self, trial: "FrozenTrial") -> None:
        """Count and print the result of a trial."""
        if reason := trial.user_attrs.get("rejected"):
            values = format_values(self.space.active_values(trial.params))
            self.print(f"trial {trial.number} rejected before training: {reason}; {values}")
            return
        accuracy, error = None, trial.user_attrs.get("error")
        if trial.value is not None and trial.state.name == "COMPLETE":
            accuracy, result = trial.value, f"{trial.value:.2%}"
        elif trial.state.name == "PRUNED":
            result = f"stopped early, {error or 'below the median'}"
        else:
            self.failed += 1
            result = f"failed: {error}"
        values = format_values(self.plan.values(trial.params))
        self.print_result(f"trial {trial.number}", accuracy, f"{result} with {values}")


def main(argv: Sequence[str]) -> int:
    """Search, print the best trials, and write the best values with their source."""
    option_groups = {
        "Search": (SearchOptions,),
        "Run": (RunSettings, SearchOutput),
        "Execution": (Execution,),
    }
    about = "Find the best values of a method, on images and seeds that no table reports."
    kinds = ("dataset", "stream", "launcher")
    hidden = frozenset({"seed"})
    parsed = RequestParser(
        "sterad search", about, "method", kinds, option_groups, hidden, needs_positional=True
    ).parse(argv)
    options: SearchOptions = parsed.take(SearchOptions)
    output: SearchOutput = parsed.take(SearchOutput)
    check_out(output.out)
    if options.save_tuned is not None and options.save_tuned.suffix != ".toml":
        raise SteradError(
            f"cannot save tuned values to {str(options.save_tuned)!r}: its name must end in .toml"
        )
    plan = _create_plan(parsed, options)
    require_extra("optuna", "search")
    from sterad.experiments.search.search import Search

    search = Search.open(plan, options.storage or str(output.out / "search.journal"))
    failed = _run_search(search, parsed, output)
    _save_best(search, parsed, options, output, argv)
    return 1 if failed else 0


def _create_plan(parsed: Request, options: SearchOptions) -> SearchPlan:
    config = parsed.config()
    space = read_space(config.method, options.space)
    given = [dim.name for dim in space.dimensions if dim.name in parsed.values]
    if given:
        print(f"given, so not searched: {', '.join(given)}", file=sys.stderr)
    return SearchPlan.create(
        config,
        space.drop_dimensions(given),
        options.tested_on,
        options.seeds,
        options.sampler,
        options.trials,
        options.prune,
        options.pixels,
    )


def _run_search(search: "Search", parsed: Request, output: SearchOutput) -> int:
    """Run the missing trials; return how many failed."""
    launcher = parsed.component("launcher")
    create_job = partial(output.create_job, execution=parsed.execution())
    job = create_job(search.plan.config)
    if isinstance(launcher, Local):  # other launchers read the data on the workers' machines
        check_data([job])
    job.create_loggers()  # report an unknown or missing logger before the first run
    batch_size = getattr(launcher, "workers", None) or cores()
    with SearchView(search) as view:
        search.run(launcher, batch_size, create_job, view)
    return view.failed


def print_trials(search: "Search") -> None:
    """Print the best complete trials."""
    complete, stopped = search.count_ended()
    table = Table(title=f"{complete} trials, {stopped} stopped early")
    names = [dimension.name for dimension in search.plan.space.dimensions]
    names += [search.plan.budget.adapted.name] if search.plan.budget is not None else []
    heads = names if len(names) <= MAX_VALUE_COLUMNS else ["values"]
    for name in ("trial", "accuracy", *heads):
        table.add_column(name, justify="left" if name == "values" else "right")
    for trial in search.ranked_trials()[:MAX_PRINTED_TRIALS]:
        values = search.plan.values(trial.params)
        cells = [_format_value(values.get(name, "-")) for name in names]
        if heads != names:
            pairs = zip(names, cells, strict=True)
            cells = [", ".join(f"{name} = {cell}" for name, cell in pairs if name in values)]
        summary = summarize(trial.user_attrs["finals"])
        std = "" if summary.std is None else f" ± {summary.std:.2%}"
        table.add_row(str(trial.number), f"{summary.mean:.2%}{std}", *cells)
    Console().print(table)


def _save_best(
    search: "Search",
    parsed: Request,
    options: SearchOptions,
    output: SearchOutput,
    argv: Sequence[str],
) -> None:
    """Print the best trials; write the best values beside the runs and to --save-tuned."""
    best, plan, method = search.best_trial(), search.plan, parsed.chosen["method"]
    print_trials(search)
    values = _changed_values(plan, best.params)
    tuned = Tuned(_describe_source(search, _format_command(parsed, plan.config)), values)
    file = output.out / f"{plan.name}.toml"
    write_tuned(file, method, tuned)
    print(f"best: {best.value:.2%} with {format_values(values)}")
    print(f"written to {file}: use them with `sterad train {method} --tuned {file}`")
    if options.save_tuned is None:
        command = f"{shlex.join(['sterad', 'search', *argv])} --save-tuned FILE.toml"
        print(f"to add them to other tuned values: {command}")
    else:
        replaced = write_tuned(options.save_tuned, method, tuned)
        print(f"saved to {options.save_tuned}{f', replacing: {replaced}' if replaced else ''}")


def _changed_values(plan: SearchPlan, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the searched values of a point, and the other values that are not defaults."""
    fields = plan.build_method(point).fields
    defaults, searched = type(fields)(), plan.values(point)
    values = dataclasses.asdict(fields)
    changed = {k for k, v in values.items() if k in searched or v != getattr(defaults, k)}
    return {k: v for k, v in values.items() if k in changed and v is not None}  # TOML has no None


def _format_command(parsed: Request, config: RunConfig) -> str:
    """Return the command without the options that have no effect on the result."""
    ignored = {*field_names(SearchOutput), *field_names(Execution), "storage", "save_tuned"}
    ignored -= {"tuned", "config"}
    dataset = dataclasses.fields(config.dataset.fields)
    ignored |= {field.name for field in dataset if field.metadata.get("place")}
    ignored |= set(field_names(type(parsed.component("launcher"))))
    options = {kind: [parsed.chosen[kind]] for kind in ("dataset", "stream")} | dict(parsed.typed)
    words = [
        f"{option_name(name)} {' '.join(values)}"
        for name, values in options.items()
        if name not in ignored
    ]
    return " ".join(["sterad search", config.method.name, *words])


def _describe_source(search: "Search", command: str) -> str:
    plan, (complete, stopped) = search.plan, search.count_ended()
    seeds = ", ".join(map(str, plan.seeds))
    commit = provenance()["git_commit"] or "unknown"
    return (
        f"{command}: {search.best_trial().value:.2%} on {plan.test_data}, mean of seeds {seeds}; "
        f"best of {complete} trials, {stopped} more stopped early; commit {commit[:12]}"
    )


def format_values(values: Mapping[str, Any]) -> str:
    """Return values as `name = value`.

    >>> format_values({"lr": 0.00010000000000001, "augmentation": "full"})
    'lr = 0.0001, augmentation = full'
    """
    return ", ".join(f"{name} = {_format_value(value)}" for name, value in values.items())


def _format_value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
