"""What is there of a named dataset, whole or not: files, counts, checksums, cached arrays."""

import gzip
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from sterad.data import cache
from sterad.data.contents import Contents
from sterad.data.description import DATASETS
from sterad.data.download import file_md5
from sterad.data.sources import SOURCES, Source
from sterad.data.stored import Stored
from sterad.errors import SteradError


@dataclass(frozen=True)
class Found:
    """The outcome of a check."""

    there: bool
    """Whether the dataset can be read."""
    whole: bool
    """Whether it is all that its authors publish, and undamaged."""
    sentence: str


def check(name: str, root: Path, bytes_too: bool = False) -> Found:
    """Say what is there; with `bytes_too`, compare every known checksum as well."""
    described = DATASETS[name]
    if name not in SOURCES or not issubclass(described, Stored):
        raise SteradError(
            f"{name!r} is in the package or your own, and there is nothing to check: known are "
            f"{', '.join(sorted(SOURCES))}"
        )
    try:
        contents = described(root=root).contents()
    except SteradError as error:
        return Found(False, False, str(error))
    source = SOURCES[name]
    counts = (len(contents.class_names), len(contents.train.labels), len(contents.test.labels))
    official = (source.classes, source.train, source.test)
    found = "{} classes, {:,} training and {:,} test images".format(*counts)
    if counts != official:
        wanted = "{}, {:,} and {:,}".format(*official)
        return Found(True, False, f"{name} is there in part: {found}, of {wanted}")
    if bytes_too and (odd := _differing(contents, source)) is not None:
        return Found(True, False, f"{name}: the checksum of {str(odd)!r} is not the official one")
    return Found(True, True, f"{name} is whole: {found}")


def _differing(contents: Contents, source: Source) -> Path | None:
    """Return the first file whose checksum is known and not its own."""
    plain = {Path(known).name: md5 for known, md5 in source.md5.items()}
    packed = {Path(one.path).name: one.md5 for choice in source.choices for one in choice}
    for path in contents.sources:
        name = path.name.removesuffix(".gz").replace(".idx", "-idx")
        if name in plain:
            if _content_md5(path) != plain[name]:
                return path
        elif packed.get(path.name) is not None and file_md5(path) != packed[path.name]:
            return path
    return None


def _content_md5(path: Path) -> str:
    if path.suffix != ".gz":
        return file_md5(path)
    with gzip.open(path) as file:
        return hashlib.md5(file.read(), usedforsecurity=False).hexdigest()


def check_cache(name: str, root: Path) -> list[str]:
    """Read every byte of the cached arrays of a dataset; remove and name what is damaged."""
    said = []
    for place in cache.places(root):
        for entry in sorted(place.glob(f"{name}-*")):
            if not _belongs(entry.name, name):
                continue
            try:
                cache.verify(entry)
                said.append(f"{entry}: whole")
            except cache.StaleError:
                said.append(f"{entry}: of an older version; it is made again when needed")
            except cache.DamagedError as error:
                shutil.rmtree(entry, ignore_errors=True)
                said.append(f"{entry}: damaged ({error}), removed; it is made again when needed")
    return said


def _belongs(key: str, name: str) -> bool:
    return key.rpartition("-")[0] == name
