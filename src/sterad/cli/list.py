"""`sterad list`: what there is, and where each comes from."""

import dataclasses
import inspect
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from sterad.classifiers import CLASSIFIERS
from sterad.data import DATASETS
from sterad.encoders import ENCODERS
from sterad.errors import SteradError
from sterad.experiments.launchers import LAUNCHERS
from sterad.experiments.tuned import read_tuned, tuned_files
from sterad.memory import MEMORIES
from sterad.methods import METHODS
from sterad.registry import Registry, load_plugin
from sterad.sinks import SINKS
from sterad.sphere import LAWS
from sterad.streams import STREAMS
from sterad.views import RECIPES

REGISTRIES: tuple[Registry[Any], ...] = (
    METHODS,
    DATASETS,
    STREAMS,
    ENCODERS,
    RECIPES,
    MEMORIES,
    CLASSIFIERS,
    LAWS,
    LAUNCHERS,
    SINKS,
)


def show(
    name: Annotated[str | None, tyro.conf.Positional] = None, plugin: tuple[Path, ...] = ()
) -> None:
    """Say what there is and where it comes from; with a NAME, its fields and their defaults.

    Args:
        name: A method, dataset, stream, ...
        plugin: Python files that register your own.
    """
    for file in plugin:
        load_plugin(file)
    if name is None:
        _print_all()
    else:
        _print_one(name)


def _first_sentence(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _print_all() -> None:
    console = Console(highlight=False)
    for registry in REGISTRIES:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(width=20)
        for name in registry:
            origin = registry.origin(name).rpartition(".")[0]
            table.add_row(f"  {name}", f"{_first_sentence(registry[name])} [dim]{origin}[/dim]")
        console.print(f"[bold]{registry.kind}[/bold]", table, sep="\n")


def _print_one(name: str) -> None:
    found = [registry for registry in REGISTRIES if name in registry]
    if not found:
        known = [one for registry in REGISTRIES for one in registry]
        raise SteradError(f"nothing is called {name!r}: known are {', '.join(known)}")
    for registry in found:
        thing = registry[name]
        print(f"{registry.kind} {registry.resolve(name)}: {_first_sentence(thing)}")
        described = getattr(thing, "Config", thing)
        if dataclasses.is_dataclass(described):
            for field in dataclasses.fields(described):
                print(f"  {field.name} = {field.default!r}")
        if registry is METHODS:
            _print_tuned(registry.resolve(name))
            print(f"`sterad train {registry.resolve(name)} --help` explains each.")


def _print_tuned(method: str) -> None:
    for name in tuned_files():
        if (found := read_tuned(name).get(method)) is not None:
            values = ", ".join(f"{key} = {value!r}" for key, value in found.values.items())
            print(f"  --tuned {name} ({found.source}): {values}")


def main(argv: list[str]) -> int:
    """Run the command."""
    tyro.cli(show, args=argv, prog="sterad list")
    return 0
