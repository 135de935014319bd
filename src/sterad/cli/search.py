"""`sterad search`: the values of a method that do best, found on images and seeds not reported."""

import dataclasses
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from sterad.cli.launching import launcher_named
from sterad.cli.options import flat, parse
from sterad.cli.search_view import SearchView, print_best, shown
from sterad.cli.train import Place
from sterad.errors import SteradError
from sterad.experiments.config import Protocol, RunConfig
from sterad.experiments.execution import cores
from sterad.experiments.fields import names_of
from sterad.experiments.launchers import LAUNCHERS, Job, Launcher
from sterad.experiments.provenance import provenance
from sterad.experiments.search.best import best_file, write_best
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.space import read_space

if TYPE_CHECKING:
    from sterad.experiments.search.searching import Search


@dataclass(frozen=True)
class Asked(Protocol):
    """The protocol of every run; its seeds are those of the search."""

    seed: Annotated[int, tyro.conf.Fixed, tyro.conf.Suppress] = 0


@dataclass(frozen=True)
class Searching:
    """What is searched and how far."""

    sampler: Literal["grid", "tpe"] = "tpe"
    """Every point of the space, or those that TPE takes to be promising."""
    trials: int | None = None
    """Points to try in all, those of earlier calls included; the whole grid, or 50 of TPE's."""
    space: Path | None = None
    """A TOML file with a table a method of lists and ranges; the paper's space by default."""
    seeds: tuple[int, ...] = ()
    """Seeds of each point; 100 101 102, which no table reports, or the paper's 0 1 2 for test."""
    objective: Literal["validation", "test"] = "validation"
    """Test on a tenth (--validation) of the training images, or, as the paper did, on the test
    images, which then are no test of what is found."""
    prune: bool = True
    """Stop a trial that at a moment is below the median of complete ones at the same moment."""
    storage: str | None = None
    """A file, by default search.journal beside the runs, or for many machines a database,
    postgresql+psycopg://USER:PASSWORD@HOST/NAME say. Calls with one storage share the search."""
    write: str | None = None
    """Name of the tuned values under studies/best, or a path; the dataset's name by default."""
    launcher: str = "local"
    """Who runs the runs: see `sterad list`. Its fields are options too; --workers are the trials
    at a time, by default one for each core of this machine."""


def main(argv: list[str]) -> int:
    """Search, print the best trials, and write the best values down with where they come from."""
    launcher: Any = LAUNCHERS[launcher_named(argv)]()
    extra = {"searching": Searching(), "protocol": Asked(), "place": Place(out=Path("searches"))}
    extra |= {"of_launcher": launcher}
    parsed = parse(argv, "method", ("dataset", "stream"), extra, "sterad search")
    config = RunConfig.of(**flat(parsed, ("method", "dataset", "stream", "protocol")))
    plan = _plan(config, parsed.searching, {*_given(argv), *_written(parsed.place.config)})
    search = _opened(plan, parsed.searching.storage or str(parsed.place.out / "search.journal"))
    failed = _run(search, parsed.of_launcher, parsed.place)
    best = print_best(search)
    source = _source(search, _command(argv, config, parsed.of_launcher))
    values = _values(search.plan, best.params)
    file = best_file(parsed.searching.write or config.dataset.name)
    before = write_best(file, config.method.name, source, values)
    print(f"best: {best.value:.2%} with {shown(values)}")
    print(f"written to {file}{f', in place of: {before}' if before else ''}")
    tuned = parsed.searching.write or config.dataset.name
    print(f"`sterad train {config.method.name} --tuned {tuned} ...` takes these values")
    return 1 if failed else 0


def _plan(config: RunConfig, asked: Searching, given: set[str]) -> SearchPlan:
    space = read_space(config.method, asked.space)
    settled = [one.name for one in space.dimensions if one.name in given]
    if settled:
        print(f"given, so not searched: {', '.join(settled)}", file=sys.stderr)
    return SearchPlan.of(
        config,
        space.without(settled),
        asked.objective,
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


def _run(search: "Search", launcher: Launcher, place: Place) -> int:
    execution = place.execution()

    def job(config: RunConfig) -> Job:
        return Job(config, place.out, execution, place.checkpoint_every, place.plugin)

    with SearchView(search) as view:
        search.run(launcher, getattr(launcher, "workers", None) or cores(), job, view)
    return view.failed


def _values(plan: SearchPlan, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a point and those in which its method differs from the defaults."""
    method = plan.space.at(point)
    usual, searched = type(method.fields)(), plan.space.values(point)
    every = dataclasses.asdict(method.fields)
    return {k: v for k, v in every.items() if k in searched or v != getattr(usual, k)}


def _given(argv: list[str]) -> dict[str, str]:
    """Return the options of the command line by the names of their fields, with their words."""
    given: dict[str, str] = {}
    name = ""
    for word in argv:
        if word.startswith("--"):
            option, _, value = word.removeprefix("--").partition("=")
            name = option.replace("-", "_")
            given[name] = value
        elif name:
            given[name] = f"{given[name]} {word}".strip()
    return given


def _written(config: Path | None) -> set[str]:
    names = tomllib.loads(config.read_text()) if config else {}
    return {name.replace("-", "_") for name in names}


def _command(argv: list[str], config: RunConfig, launcher: Any) -> str:
    """Return what was asked, without what says only where and how it is computed."""
    places = {one.name for one in dataclasses.fields(Place)} - {"tuned", "config"}
    places |= {"storage", "write", "launcher", *names_of(type(launcher))}
    places |= {f.name for f in dataclasses.fields(config.dataset.fields) if f.metadata.get("place")}
    kept = [(name, said) for name, said in _given(argv).items() if name not in places]
    words = [f"--{name.replace('_', '-')} {said}".strip() for name, said in kept]
    return " ".join(["sterad search", config.method.name, *words])


def _source(search: "Search", command: str) -> str:
    plan, trials = search.plan, search.counted()
    seeds = ", ".join(map(str, plan.seeds))
    commit = provenance()["git_commit"] or "unknown"
    return (
        f"{command}: {search.best().value:.2%} on {plan.tested}, mean of seeds {seeds}; best of "
        f"{trials['complete']} trials, {trials['stopped']} more stopped early; commit {commit[:12]}"
    )
