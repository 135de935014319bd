"""`sterad data`: what datasets there are, which of them are here whole, and how to get them."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sterad.cli.options import positional, read
from sterad.data import DATASETS
from sterad.data.dataset_files import check, check_cache, get
from sterad.data.sources import SOURCES, data_root
from sterad.errors import SteradError


@dataclass(frozen=True)
class ListOptions:
    """Say which datasets there are, how large, under which license and where from."""


@dataclass(frozen=True)
class CheckOptions:
    """Say whether a dataset is there, whole or not; without a NAME, all of them."""

    name: str | None = positional("NAME", None)
    """A dataset, see `sterad data list`."""
    root: Path | None = None
    """Where the data lie; STERAD_DATA by default, else `data`."""


@dataclass(frozen=True)
class GetOptions:
    """Fetch the official files of a dataset, verify and unpack them; a second call continues."""

    name: str = positional("NAME")
    """A dataset, see `sterad data list`."""
    root: Path | None = None
    """Where the data shall lie; STERAD_DATA by default, else `data`."""


def show(_: ListOptions) -> int:
    """Print the datasets."""
    for name in DATASETS:
        source = SOURCES.get(name)
        if source is None:
            print(f"{name}\n  {(inspect.getdoc(DATASETS[name]) or '').partition(chr(10))[0]}")
            continue
        shape = "x".join(map(str, source.image))
        print(f"{name}\n  {source.title}")
        print(
            f"  {source.classes} classes, {source.train:,} training and {source.test:,} test "
            f"images of {shape}, {source.size / 1e6:,.0f} MB to fetch"
        )
        print(f"  license: {source.license}\n  from {source.page}")
    return 0


def examine(options: CheckOptions) -> int:
    """Print what is there; return 1 where something is not whole."""
    name, place = options.name, data_root(options.root)
    names = sorted(SOURCES) if name is None else [DATASETS.resolve(name)]
    whole = True
    for one in names:
        found = check(one, place, checksums=True)
        if name is None and not found.is_readable and not _begun(one, place):
            print(f"{one} is not there")
            continue
        whole &= found.is_complete
        print(found.message)
        for line in check_cache(one, place):
            print(f"  {line}")
    return 0 if whole else 1


def fetch(options: GetOptions) -> int:
    """Fetch, and print where it lies."""
    print(get(DATASETS.resolve(options.name), data_root(options.root)))
    return 0


COMMANDS: dict[str, tuple[type[Any], Callable[[Any], int]]] = {
    "list": (ListOptions, show),
    "check": (CheckOptions, examine),
    "get": (GetOptions, fetch),
}


def _begun(name: str, root: Path) -> bool:
    folders = [one.unpacks or one.path for choice in SOURCES[name].choices for one in choice]
    return any((root / folder).exists() for folder in folders)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    name = argv[0] if argv else "--help"
    if name in ("-h", "--help"):
        print(f"{__doc__}\n")
        for command, (options, _) in COMMANDS.items():
            print(f"  sterad data {command:6} {(options.__doc__ or '').partition(chr(10))[0]}")
        return 0
    if name not in COMMANDS:
        raise SteradError(f"unknown command 'data {name}': known are {', '.join(COMMANDS)}")
    options, act = COMMANDS[name]
    code = act(read(options, argv[1:], f"sterad data {name}"))
    sys.stdout.flush()
    return code
