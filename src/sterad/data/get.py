"""Getting a named dataset: its official files under the root, verified and unpacked."""

from pathlib import Path

from sterad.data.archive import unpack
from sterad.data.check import check
from sterad.data.download import Patience, download, file_md5
from sterad.data.lock import locked
from sterad.data.sources import SOURCES, Remote, Source
from sterad.errors import SteradError


def get(name: str, root: Path, patience: Patience | None = None) -> str:
    """Fetch what is missing of a dataset and return a sentence about what was done."""
    source = SOURCES.get(name)
    if source is None:
        raise SteradError(
            f"{name!r} has no official source to fetch: known are {', '.join(sorted(SOURCES))}"
        )
    before = check(name, root)
    if before.there:
        return f"{name} is there already; {before.sentence}"
    try:
        (root / ".sterad").mkdir(parents=True, exist_ok=True)
        with locked(root / ".sterad" / f"get-{name}.lock", f"fetching {name}", wait=False):
            _fetch_all(choice_of(source, root), root, patience)
    except OSError as error:
        raise SteradError(
            f"cannot write to {str(root)!r}: {error.strerror}. Choose another --root"
        ) from error
    after = check(name, root)
    if not after.there:
        raise SteradError(after.sentence)
    return after.sentence


def choice_of(source: Source, root: Path) -> tuple[Remote, ...]:
    """Return the files to fetch: those that are there already, else the first choice."""
    for choice in source.choices:
        if all((root / remote.path).exists() for remote in choice):
            return choice
    return source.choices[0]


def _fetch_all(choice: tuple[Remote, ...], root: Path, patience: Patience | None) -> None:
    for remote in choice:
        target = root / remote.path
        if remote.unpacks is not None and (root / remote.unpacks).exists():
            raise SteradError(
                f"{str(root / remote.unpacks)!r} is there already and is not whole: move it away, "
                "then run this again"
            )
        if target.exists():
            _verify(target, remote)
        else:
            download(remote.url, target, remote.size, remote.md5, patience)
        if remote.unpacks is not None:
            unpack(target, root, remote.unpacks)


def _verify(target: Path, remote: Remote) -> None:
    """Refuse a file that someone put there and that is not the official one."""
    if remote.md5 is not None and (found := file_md5(target)) != remote.md5:
        raise SteradError(
            f"{str(target)!r} is not the official file: its checksum is {found} and must be "
            f"{remote.md5}. Remove it and run this again"
        )
