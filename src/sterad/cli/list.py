"""`sterad list`: the registered components, and the modules that define them."""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sterad.classifiers import CLASSIFIERS
from sterad.cli.help import summary_of
from sterad.cli.options import parse_options, positional
from sterad.data import DATASETS
from sterad.encoders import ENCODERS
from sterad.encoders.make import HOW_TO_BRING_YOUR_OWN
from sterad.errors import SteradError, suggest_name
from sterad.experiments.launchers import LAUNCHERS
from sterad.experiments.tuned import read_tuned, tuned_files
from sterad.loggers import LOGGERS
from sterad.memory import MEMORIES, RETRIEVALS
from sterad.methods import METHODS
from sterad.plugins import load_plugin
from sterad.registry import Registry, canonical_name
from sterad.sphere import LAWS
from sterad.streams import STREAMS
from sterad.views import AUGMENTATIONS

REGISTRIES: tuple[Registry[Any], ...] = (
    *(METHODS, DATASETS, STREAMS, ENCODERS, AUGMENTATIONS),
    *(MEMORIES, RETRIEVALS, CLASSIFIERS, LAWS, LAUNCHERS, LOGGERS),
)


@dataclass(frozen=True)
class ListOptions:
    """List all components, those of one kind, or the fields of one component."""

    name: str | None = positional("NAME", None)
    """A kind, such as methods or streams, or the name of a component."""
    plugin: tuple[Path, ...] = ()
    """A Python file that registers your own components (repeatable)."""


def _print_all(registries: Sequence[Registry[Any]]) -> None:
    console = Console(highlight=False)
    for registry in registries:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(width=20)
        for name in registry:
            module = registry.qualified_name(name).rpartition(".")[0]
            summary = escape(summary_of(registry[name]))
            table.add_row(f"  {name}", f"{summary} [dim]{module}[/dim]")
        console.print(f"[bold]{registry.kind}[/bold]", table, sep="\n")
        if registry is ENCODERS:
            console.print(f"  {escape(HOW_TO_BRING_YOUR_OWN)}.")


def _print_one(name: str) -> None:
    found = [registry for registry in REGISTRIES if name in registry]
    if not found:
        kinds = [_plural(registry) for registry in REGISTRIES]
        near = suggest_name(name, [*itertools.chain(*REGISTRIES), *kinds])
        raise SteradError(f"unknown component {name!r}: {near}kinds are {', '.join(kinds)}")
    for registry in found:
        main_name, component = registry.resolve(name), registry[name]
        print(f"{registry.kind} {main_name}: {summary_of(component)}")
        config = getattr(component, "Config", component)
        if dataclasses.is_dataclass(config):
            for field in dataclasses.fields(config):
                print(f"  {field.name} = {field.default!r}")
        if registry is METHODS:
            _print_tuned(main_name)
            print(f"`sterad train {main_name} --help` explains the fields.")


def _print_tuned(method: str) -> None:
    for name in tuned_files():
        if (tuned := read_tuned(name).get(method)) is not None:
            values = ", ".join(f"{key} = {value!r}" for key, value in tuned.values.items())
            print(f"  --tuned {name} ({tuned.source}): {values}")


def _plural(registry: Registry[Any]) -> str:
    return f"{registry.kind[:-1]}ies" if registry.kind.endswith("y") else f"{registry.kind}s"


def _kind_names(registry: Registry[Any]) -> tuple[str, ...]:
    """Return the words for a kind, such as memory policies and, shorter, memories."""
    names = registry.kind, _plural(registry), registry.group.rpartition(".")[2]
    return tuple(map(canonical_name, names))


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: ListOptions = parse_options(ListOptions, argv, "sterad list")
    for file in options.plugin:
        load_plugin(file)
    kind = canonical_name(options.name or "")
    matching = [registry for registry in REGISTRIES if kind in _kind_names(registry)]
    if options.name is None or matching:
        _print_all(matching or REGISTRIES)
    else:
        _print_one(options.name)
    return 0
