"""Download and check the official files of named datasets: `sterad data get` and `check`."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from sterad.data import cache
from sterad.data.archive import unpack
from sterad.data.dataset_config import DATASETS
from sterad.data.download import download, file_md5
from sterad.data.file_dataset import Contents, FileDataset
from sterad.data.sources import SOURCES, Remote, Source
from sterad.errors import SteradError


@dataclass(frozen=True)
class CheckResult:
    """Result of a check."""

    is_readable: bool
    """Whether the files can be read."""
    is_complete: bool
    """Whether the files are complete and undamaged."""
    message: str


def check(name: str, root: Path, checksums: bool = False) -> CheckResult:
    """Check the files of a dataset; with `checksums`, also compare their checksums."""
    config = DATASETS[name]
    if name not in SOURCES or not issubclass(config, FileDataset):
        raise SteradError(
            f"{name!r} has no official files: choose one of {', '.join(sorted(SOURCES))}"
        )
    try:
        contents = config(root=root).contents()
    except SteradError as error:
        return CheckResult(False, False, str(error))
    source = SOURCES[name]
    counts = (len(contents.class_names), len(contents.train.labels), len(contents.test.labels))
    official = (source.classes, source.train, source.test)
    found = "{} classes, {:,} training and {:,} test images".format(*counts)
    if counts != official:
        expected = "{}, {:,} and {:,}".format(*official)
        return CheckResult(True, False, f"{name} is incomplete: {found}, of {expected}")
    known = _find_checksums(contents, source)
    for path, (is_unpacked, md5) in known.items() if checksums else ():
        if file_md5(path, is_unpacked) != md5:
            problem = f"the checksum of {str(path)!r} is not the official one"
            return CheckResult(True, False, f"{name}: {problem}")
    is_verified = known if checksums else all(remote.md5 for remote in source.choices[0])
    note = "" if is_verified else "; their content is not verified: no checksum of it is published"
    return CheckResult(True, True, f"{name} is complete: {found}{note}")


def _find_checksums(contents: Contents, source: Source) -> dict[Path, tuple[bool, str]]:
    """Return the official MD5 of each file, and whether it is that of the unpacked file."""
    unpacked = {Path(known).name: md5 for known, md5 in source.md5.items()}
    packed = {Path(remote.path).name: remote.md5 for c in source.choices for remote in c}
    found = {}
    for path in contents.sources:
        name = path.name.removesuffix(".gz").replace(".idx", "-idx")
        if name in unpacked:
            found[path] = (True, unpacked[name])
        elif (md5 := packed.get(path.name)) is not None:
            found[path] = (False, md5)
    return found


def check_cache(name: str, root: Path) -> list[str]:
    """Read every byte of the cache entries of a dataset, remove damaged ones, return messages."""
    messages = []
    for entry in sorted(cache.cache_folder(root).glob(f"{name}-*")):
        if entry.name.rpartition("-")[0] != name:  # an entry of a dataset with a longer name
            continue
        try:
            cache.verify_entry(root, entry)
            messages.append(f"{str(entry)!r} is complete")
        except cache.StaleError as error:
            messages.append(f"{error}; {cache.REMEDY}")
        except SteradError as error:
            shutil.rmtree(entry, ignore_errors=True)
            messages.append(f"{error}. It was removed")
    return messages


def get(name: str, root: Path) -> str:
    """Download and unpack the missing files of a dataset and return a message for the user."""
    before = check(name, root)
    if before.is_readable:
        return f"{name} already exists, so nothing is downloaded; {before.message}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with cache.hold_lock(root / f".get-{name}.lock", f"downloading {name}", wait=False):
            choices = SOURCES[name].choices
            present = [c for c in choices if all((root / remote.path).exists() for remote in c)]
            for remote in (present or choices)[0]:
                _get_file(remote, root)
    except OSError as error:
        raise SteradError(
            f"cannot write to {str(root)!r}: {error.strerror}. Choose another --root"
        ) from error
    after = check(name, root)
    if not after.is_complete:
        raise SteradError(f"{after.message}. Remove the files and run this again")
    return after.message


def _get_file(remote: Remote, root: Path) -> None:
    """Download a file unless it exists, check it and unpack it."""
    target = root / remote.path
    if remote.unpacks is not None and (root / remote.unpacks).exists():
        raise SteradError(
            f"{str(root / remote.unpacks)!r} exists but is incomplete: move it to another "
            "place, then run this again"
        )
    if not target.exists():
        download(remote.url, target, remote.size, remote.md5)
    elif remote.md5 is not None and (found := file_md5(target)) != remote.md5:
        raise SteradError(
            f"{str(target)!r} is not the official file: its checksum is {found} and must be "
            f"{remote.md5}. Remove it and run this again"
        )
    if remote.unpacks is not None:
        unpack(target, root, remote.unpacks)
