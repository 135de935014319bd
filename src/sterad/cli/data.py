"""`sterad data`: list, check and download datasets."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sterad.cli.options import parse_options, positional
from sterad.data import DATASETS
from sterad.data.dataset_files import check, check_cache, get
from sterad.data.sources import SOURCES, data_root
from sterad.errors import SteradError


@dataclass(frozen=True)
class ListOptions:
    """List all datasets with their size, license and source."""


@dataclass(frozen=True)
class CheckOptions:
    """Check whether a dataset is present and complete; without NAME, check all."""

    name: str | None = positional("NAME", None)
    """Name of a dataset, see `sterad data list`."""
    root: Path | None = None
    """Folder of the data (default: STERAD_DATA, else `data`)."""


@dataclass(frozen=True)
class GetOptions:
    """Download, verify and unpack the official files of a dataset; run again to continue."""

    name: str = positional("NAME")
    """Name of a dataset, see `sterad data list`."""
    root: Path | None = None
    """Folder of the data (default: STERAD_DATA, else `data`)."""


def list_datasets(_: ListOptions) -> int:
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
            f"images of {shape}, {source.size / 1e6:,.0f} MB to download"
        )
        print(f"  license: {source.license}\n  from {source.page}")
    return 0


def check_datasets(options: CheckOptions) -> int:
    """Print the state of datasets; return 1 if one is incomplete."""
    root = data_root(options.root)
    names = sorted(SOURCES) if options.name is None else [DATASETS.resolve(options.name)]
    is_complete = True
    for name in names:
        result = check(name, root, checksums=True)
        if options.name is None and not result.is_readable and not _has_files(name, root):
            print(f"{name} is not present")
            continue
        is_complete &= result.is_complete
        print(result.message)
        for line in check_cache(name, root):
            print(f"  {line}")
    return 0 if is_complete else 1


def get_dataset(options: GetOptions) -> int:
    """Download a dataset and print where its files are."""
    print(get(DATASETS.resolve(options.name), data_root(options.root)))
    return 0


COMMANDS: dict[str, tuple[type[Any], Callable[[Any], int]]] = {
    "list": (ListOptions, list_datasets),
    "check": (CheckOptions, check_datasets),
    "get": (GetOptions, get_dataset),
}


def _has_files(name: str, root: Path) -> bool:
    files = [file.unpacks or file.path for choice in SOURCES[name].choices for file in choice]
    return any((root / file).exists() for file in files)


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
    options, run = COMMANDS[name]
    code = run(parse_options(options, argv[1:], f"sterad data {name}"))
    sys.stdout.flush()
    return code
