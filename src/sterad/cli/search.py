"""`sterad search`: the values of a method that do best, found on images and seeds not reported."""

import dataclasses
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sterad.cli.components import Request, parse_request
from sterad.cli.search_view import SearchView, print_best, shown
from sterad.cli.train import OutputOptions
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig, RunSettings
from sterad.experiments.launchers import Job, Local, check_data
from sterad.experiments.provenance import provenance
from sterad.experiments.search.best import write_best
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.space import read_space
from sterad.threads import cores
from sterad.validation import Count, Seed, field_names

if TYPE_CHECKING:
    from sterad.experiments.search.searching import Search


@dataclass(frozen=True)
class SearchOptions:
    """What is searched and how far."""

    sampler: Literal["grid", "tpe"] = "tpe"
    """Every point of the space, or those that TPE takes to be promising."""
    trials: Count | None = None
    """Points to try in all, those of earlier calls included (default: the whole grid, or 50 of
    TPE's)."""
    space: Path | None = None
    """A TOML file with a table a method of lists and ranges (default: the paper's space)."""
    seeds: tuple[Seed, ...] = ()
    """Seeds of each point (default: 100 101 102, which no table reports, or the paper's 0 1 2 for
    test)."""
    tested_on: Literal["validation", "test"] = "validation"
    """Test on a tenth (--validation) of the training images, or, as the paper did, on the test
    images, which then are no test of what is found."""
    prune: bool = True
    """Stop no trial before its end; otherwise one that is below the median of complete trials at
    the same moment is stopped."""
    storage: str | None = None
    """A file (default: search.journal beside the runs), or for many machines a database,
    postgresql+psycopg://USER:PASSWORD@HOST/NAME say. Calls with one storage share the search."""
    save_tuned: Path | None = None
    """Also put the best values into this .toml file of tuned values, in the place of the method's
    earlier ones."""


@dataclass(frozen=True)
class SearchOutput(OutputOptions):
    """Where the runs of a search are written."""

    out: Path = Path("searches")
    """Folder of all runs of searches, and of what was found."""


def main(argv: Sequence[str]) -> int:
    """Search, print the best trials, and write the best values down with where they come from."""
    own = {
        "Search": (SearchOptions,),
        "Run": (RunSettings, SearchOutput),
        "Execution": (Execution,),
    }
    about = "Find the values of a method that do best, on images and seeds that no table reports."
    kinds = ("dataset", "stream", "launcher")
    hidden = frozenset({"seed"})
    asked = parse_request(
        argv, "sterad search", about, "method", kinds, own, hidden, optional=False
    )
    options: SearchOptions = asked.take(SearchOptions)
    place: SearchOutput = asked.take(SearchOutput)
    if options.save_tuned is not None and options.save_tuned.suffix != ".toml":
        raise SteradError(
            f"cannot save tuned values to {str(options.save_tuned)!r}: its name must end in .toml"
        )
    config = asked.config()
    plan = _plan(config, options, set(asked.values))
    search = _opened(plan, options.storage or str(place.out / "search.journal"))
    failed = _run(search, asked, place)
    _keep(search, asked, options, place, argv)
    return 1 if failed else 0


def _keep(
    search: "Search",
    asked: Request,
    options: SearchOptions,
    place: SearchOutput,
    argv: Sequence[str],
) -> None:
    """Print the best trials; write the best values beside the runs and where asked to."""
    best, plan, method = print_best(search), search.plan, asked.chosen["method"]
    values = _values(plan, best.params)
    source = _source(search, _command(asked, plan.config))
    file = place.out / f"{plan.name}.toml"
    write_best(file, method, source, values)
    print(f"best: {best.value:.2%} with {shown(values)}")
    print(f"written to {file}: `sterad train {method} --tuned {file}` takes these values")
    if options.save_tuned is None:
        again = f"{shlex.join(['sterad', 'search', *argv])} --save-tuned FILE.toml"
        print(f"to keep them among other tuned values: {again}")
    else:
        before = write_best(options.save_tuned, method, source, values)
        replaced = f", in place of: {before}" if before else ""
        print(f"saved to {options.save_tuned}{replaced}")


def _plan(config: RunConfig, asked: SearchOptions, given: set[str]) -> SearchPlan:
    space = read_space(config.method, asked.space)
    settled = [one.name for one in space.dimensions if one.name in given]
    if settled:
        print(f"given, so not searched: {', '.join(settled)}", file=sys.stderr)
    return SearchPlan.of(
        config,
        space.without(settled),
        asked.tested_on,
        asked.seeds,
        asked.sampler,
        asked.trials,
        asked.prune,
    )


def _opened(plan: SearchPlan, storage: str) -> "Search":
    try:
        import optuna  # noqa: F401 - an extra
    except ImportError as error:
        raise SteradError(
            f"searching needs optuna ({error}): pip install 'sterad[search]'"
        ) from error
    from sterad.experiments.search.searching import Search

    return Search.open(plan, storage)


def _run(search: "Search", asked: Request, place: SearchOutput) -> int:
    execution, launcher = asked.execution(), asked.component("launcher")

    def job(config: RunConfig) -> Job:
        return Job(config, place.out, execution, place.checkpoint_every, place.plugin)

    if isinstance(launcher, Local):  # elsewhere the data lie on the workers' machines
        check_data([job(search.plan.config)])
    with SearchView(search) as view:
        search.run(launcher, getattr(launcher, "workers", None) or cores(), job, view)
    return view.failed


def _values(plan: SearchPlan, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a point and those in which its method differs from the defaults."""
    method = plan.space.at(point)
    usual, searched = type(method.fields)(), plan.space.values(point)
    every = dataclasses.asdict(method.fields)
    return {k: v for k, v in every.items() if k in searched or v != getattr(usual, k)}


def _command(asked: Request, config: RunConfig) -> str:
    """Return what was asked, without what says only where and how it is computed."""
    places = {*field_names(SearchOutput), *field_names(Execution), "storage", "save_tuned"}
    places -= {"tuned", "config"}
    dataset = dataclasses.fields(config.dataset.fields)
    places |= {one.name for one in dataset if one.metadata.get("place")}
    places |= set(field_names(type(asked.component("launcher"))))
    named = {kind: [asked.chosen[kind]] for kind in ("dataset", "stream")}
    kept = {
        name: words for name, words in (named | dict(asked.typed)).items() if name not in places
    }
    words = [f"--{name.replace('_', '-')} {' '.join(said)}" for name, said in kept.items()]
    return " ".join(["sterad search", config.method.name, *words])


def _source(search: "Search", command: str) -> str:
    plan, trials = search.plan, search.counted()
    seeds = ", ".join(map(str, plan.seeds))
    commit = provenance()["git_commit"] or "unknown"
    return (
        f"{command}: {search.best().value:.2%} on {plan.tested}, mean of seeds {seeds}; best of "
        f"{trials['complete']} trials, {trials['stopped']} more stopped early; commit {commit[:12]}"
    )
