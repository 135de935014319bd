"""`sterad data`: list, check and download datasets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sterad.cli.help import summary_of
from sterad.cli.options import parse_options, positional
from sterad.data import DATASETS
from sterad.data.dataset_files import check, check_cache, get
from sterad.data.file_dataset import data_root
from sterad.data.sources import SOURCES
from sterad.data.user_files import UserFiles
from sterad.errors import SteradError, suggest_name


@dataclass(frozen=True)
class ListDatasets:
    """List all datasets with their size, license and source."""

    def run(self) -> int:
        """Print the datasets."""
        for name in DATASETS:
            source = SOURCES.get(name)
            if source is None:
                print(f"{name}\n  {summary_of(DATASETS[name])}")
                continue
            shape = "x".join(map(str, source.image))
            print(f"{name}\n  {source.title}")
            print(
                f"  {source.classes} classes, {source.train:,} training and {source.test:,} test "
                f"images of {shape}, {source.size / 1e6:,.0f} MB to download"
            )
            print(f"  license: {source.license}\n  from {source.page}")
        return 0


@dataclass(frozen=True)
class CheckDatasets:
    """Check whether a dataset is present and complete; without NAME, check all."""

    name: str | None = positional("NAME", None)
    """Name of a dataset, see `sterad data list`."""
    root: Path | None = None
    """Folder of the data (default: STERAD_DATA, else `data`)."""

    def run(self) -> int:
        """Print the state of datasets; return 1 if one is incomplete."""
        root, is_complete = data_root(self.root), True
        for name in sorted(SOURCES) if self.name is None else [DATASETS.resolve(self.name)]:
            if issubclass(DATASETS[name], UserFiles):  # only the cache can be checked
                print("\n".join(check_cache(name, root)) or f"{name} has no decoded images")
                continue
            result = check(name, root, checksums=True)
            if self.name is None and not result.is_readable and not _has_files(name, root):
                print(f"{name} is not present")
                continue
            is_complete &= result.is_complete
            print(result.message)
            for line in check_cache(name, root):
                print(f"  {line}")
        return 0 if is_complete else 1


@dataclass(frozen=True)
class GetDataset:
    """Download, verify and unpack the official files of a dataset; run again to continue."""

    name: str = positional("NAME")
    """Name of a dataset, see `sterad data list`."""
    root: Path | None = None
    """Folder of the data (default: STERAD_DATA, else `data`)."""

    def run(self) -> int:
        """Download the dataset and print where its files are."""
        print(get(DATASETS.resolve(self.name), data_root(self.root)))
        return 0


COMMANDS: dict[str, type[Any]] = {"list": ListDatasets, "check": CheckDatasets, "get": GetDataset}


def _has_files(name: str, root: Path) -> bool:
    files = [file.unpacks or file.path for choice in SOURCES[name].choices for file in choice]
    return any((root / file).exists() for file in files)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    name = argv[0] if argv else "--help"
    if name in ("-h", "--help"):
        print(f"{__doc__}\n")
        for command, cls in COMMANDS.items():
            print(f"  sterad data {command:6} {summary_of(cls)}")
        return 0
    if name not in COMMANDS:
        near = suggest_name(name, COMMANDS)
        raise SteradError(f"unknown command 'data {name}': {near}known are {', '.join(COMMANDS)}")
    return int(parse_options(COMMANDS[name], argv[1:], f"sterad data {name}").run())
