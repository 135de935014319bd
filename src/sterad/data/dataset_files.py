"""Download and check the official files of named datasets: `sterad data get` and `check`."""

import gzip
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from sterad.data import cache
from sterad.data.archive import unpack
from sterad.data.description import DATASETS
from sterad.data.download import RetryPolicy, download, file_md5
from sterad.data.sources import SOURCES, Remote, Source
from sterad.data.stored import Contents, StoredDataset
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
    description = DATASETS[name]
    if name not in SOURCES or not issubclass(description, StoredDataset):
        raise SteradError(
            f"{name!r} has no official files to check: choose one of {', '.join(sorted(SOURCES))}"
        )
    try:
        contents = description(root=root).contents()
    except SteradError as error:
        return CheckResult(False, False, str(error))
    source = SOURCES[name]
    counts = (len(contents.class_names), len(contents.train.labels), len(contents.test.labels))
    official = (source.classes, source.train, source.test)
    found = "{} classes, {:,} training and {:,} test images".format(*counts)
    if counts != official:
        expected = "{}, {:,} and {:,}".format(*official)
        return CheckResult(True, False, f"{name} is incomplete: {found}, of {expected}")
    if checksums and (path := _find_wrong_checksum(contents, source)) is not None:
        return CheckResult(
            True, False, f"{name}: the checksum of {str(path)!r} is not the official one"
        )
    return CheckResult(True, True, f"{name} is complete: {found}")


def _find_wrong_checksum(contents: Contents, source: Source) -> Path | None:
    """Return the first file whose checksum differs from the official one."""
    unpacked = {Path(known).name: md5 for known, md5 in source.md5.items()}
    packed = {Path(remote.path).name: remote.md5 for c in source.choices for remote in c}
    for path in contents.sources:
        name = path.name.removesuffix(".gz").replace(".idx", "-idx")
        if name in unpacked:
            if _unpacked_md5(path) != unpacked[name]:
                return path
        elif packed.get(path.name) is not None and file_md5(path) != packed[path.name]:
            return path
    return None


def _unpacked_md5(path: Path) -> str:
    if path.suffix != ".gz":
        return file_md5(path)
    with gzip.open(path) as file:
        return hashlib.md5(file.read(), usedforsecurity=False).hexdigest()


def check_cache(name: str, root: Path) -> list[str]:
    """Read every byte of the cache entries of a dataset, remove damaged ones, return messages."""
    messages = []
    for folder in cache.cache_folders(root):
        for entry in sorted(folder.glob(f"{name}-*")):
            if entry.name.rpartition("-")[0] != name:  # an entry of a dataset with a longer name
                continue
            try:
                cache.verify_entry(entry)
                messages.append(f"{entry}: complete")
            except cache.StaleError:
                messages.append(f"{entry}: old format; it is rebuilt when it is needed")
            except cache.DamagedError as error:
                shutil.rmtree(entry, ignore_errors=True)
                messages.append(
                    f"{entry}: damaged ({error}) and removed; it is rebuilt when it is needed"
                )
    return messages


def get(name: str, root: Path, retry: RetryPolicy | None = None) -> str:
    """Download and unpack the missing files of a dataset and return a message for the user."""
    source = SOURCES.get(name)
    if source is None:
        raise SteradError(
            f"{name!r} has no official files to download: choose one of "
            f"{', '.join(sorted(SOURCES))}"
        )
    before = check(name, root)
    if before.is_readable:
        return f"{name} already exists, so nothing is downloaded; {before.message}"
    try:
        (root / ".sterad").mkdir(parents=True, exist_ok=True)
        with cache.hold_lock(
            root / ".sterad" / f"get-{name}.lock", f"downloading {name}", wait=False
        ):
            _download_all(choose_files(source, root), root, retry)
    except OSError as error:
        raise SteradError(
            f"cannot write to {str(root)!r}: {error.strerror}. Choose another --root"
        ) from error
    after = check(name, root)
    if not after.is_readable:
        raise SteradError(after.message)
    return after.message


def choose_files(source: Source, root: Path) -> tuple[Remote, ...]:
    """Return the files to download: a choice that is already complete, else the first one."""
    for choice in source.choices:
        if all((root / remote.path).exists() for remote in choice):
            return choice
    return source.choices[0]


def _download_all(files: tuple[Remote, ...], root: Path, retry: RetryPolicy | None) -> None:
    for remote in files:
        target = root / remote.path
        if remote.unpacks is not None and (root / remote.unpacks).exists():
            raise SteradError(
                f"{str(root / remote.unpacks)!r} exists but is incomplete: move it to another "
                "place, then run this again"
            )
        if target.exists():
            _verify_checksum(target, remote)
        else:
            download(remote.url, target, remote.size, remote.md5, retry)
        if remote.unpacks is not None:
            unpack(target, root, remote.unpacks)


def _verify_checksum(target: Path, remote: Remote) -> None:
    """Raise an error if an existing file is not the official one."""
    if remote.md5 is not None and (found := file_md5(target)) != remote.md5:
        raise SteradError(
            f"{str(target)!r} is not the official file: its checksum is {found} and must be "
            f"{remote.md5}. Remove it and run this again"
        )
