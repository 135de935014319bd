"""`sterad data`: what datasets there are, which of them are here whole, and how to get them."""

import inspect
import sys
from pathlib import Path
from typing import Annotated

import tyro

from sterad.data import DATASETS
from sterad.data.check import check, check_cache
from sterad.data.get import get
from sterad.data.layout import data_root
from sterad.data.sources import SOURCES
from sterad.errors import SteradError

COMMANDS = ("list", "check", "get")
Name = Annotated[str, tyro.conf.Positional]


def show() -> None:
    """Say which datasets there are, how large, under which licence and where from."""
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
        print(f"  licence: {source.licence}\n  from {source.page}")


def examine(
    name: Annotated[str | None, tyro.conf.Positional] = None, root: Path | None = None
) -> int:
    """Say whether a dataset is there, whole or not; without a NAME, all of them.

    Args:
        name: A dataset, see `sterad data list`.
        root: Where the data lie; STERAD_DATA by default, else `data`.
    """
    place = data_root(root)
    names = sorted(SOURCES) if name is None else [DATASETS.resolve(name)]
    whole = True
    for one in names:
        found = check(one, place, bytes_too=True)
        if name is None and not found.there and not _begun(one, place):
            print(f"{one} is not there")
            continue
        whole &= found.whole
        print(found.sentence)
        for line in check_cache(one, place):
            print(f"  {line}")
    return 0 if whole else 1


def fetch(name: Name, root: Path | None = None) -> int:
    """Fetch the official files of a dataset, verify and unpack them; a second call continues.

    Args:
        name: A dataset, see `sterad data list`.
        root: Where the data shall lie; STERAD_DATA by default, else `data`.
    """
    print(get(DATASETS.resolve(name), data_root(root)))
    return 0


def _begun(name: str, root: Path) -> bool:
    folders = [one.unpacks or one.path for choice in SOURCES[name].choices for one in choice]
    return any((root / folder).exists() for folder in folders)


def main(argv: list[str]) -> int:
    """Run the command."""
    name = argv[0] if argv else "--help"
    if name in ("-h", "--help"):
        print(f"{__doc__}\n")
        for command, does in zip(COMMANDS, (show, examine, fetch), strict=True):
            print(f"  sterad data {command:6} {(does.__doc__ or '').partition(chr(10))[0]}")
        return 0
    if name not in COMMANDS:
        raise SteradError(f"unknown command 'data {name}': known are {', '.join(COMMANDS)}")
    does = (show, examine, fetch)[COMMANDS.index(name)]
    code = tyro.cli(does, args=argv[1:], prog=f"sterad data {name}")
    sys.stdout.flush()
    return code or 0
