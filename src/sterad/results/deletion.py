"""Delete run directories, and nothing else."""

import re
from contextlib import suppress
from pathlib import Path

from sterad.errors import SteradError
from sterad.results.run_directory import RunDirectory
from sterad.results.stored_run import MAX_NAMED, StoredRun

RUN_FILES = frozenset(
    {
        "config.json",
        "events.jsonl",
        "checkpoint.pt",
        "checkpoint.previous.pt",
        "record.json",
        "lock",
    }
)
"""All files of a run directory."""
_TEMPORARY = re.compile(r"\..+\.tmp")
_RUN_NAME = re.compile(r".+-s\d+-[0-9a-f]{10}")


def check_deletable(run: StoredRun) -> None:
    """Raise unless everything in the directory is a file of a run that no process writes."""
    path = run.path
    if path.is_symlink() or not path.is_dir():
        raise SteradError(f"{str(path)!r} is not a run directory: only these are deleted")
    if not _RUN_NAME.fullmatch(path.name) and (run.record is None or run.record.id != path.name):
        raise SteradError(
            f"{str(path)!r} does not have the name of a run, METHOD-DATASET-STREAM-sSEED-HASH: "
            "it is not deleted"
        )
    foreign = sorted(file.name for file in path.iterdir() if not _is_run_file(file))
    if foreign:
        raise SteradError(
            f"{str(path)!r} has files that are not of a run ({', '.join(foreign[:MAX_NAMED])}): "
            "move them away, then delete it"
        )
    if writer := RunDirectory(path.parent, path.name).find_writer():
        raise SteradError(
            f"the run {path.name} is being written by process {writer}: stop that process first"
        )


def _is_run_file(file: Path) -> bool:
    is_plain = file.is_file() and not file.is_symlink()
    return is_plain and (file.name in RUN_FILES or bool(_TEMPORARY.fullmatch(file.name)))


def delete_run(run: StoredRun) -> int:
    """Delete a run directory while its lock is held; return the number of bytes."""
    check_deletable(run)
    folder = RunDirectory(run.path.parent, run.path.name)
    size = sum(file.stat().st_size for file in run.path.iterdir())
    with folder.locked():
        # The config last: an interrupted deletion leaves a run that can be deleted again.
        names = RUN_FILES - {"config.json", "lock"}
        for name in (*sorted(names), "config.json"):
            (run.path / name).unlink(missing_ok=True)
        with suppress(PermissionError):  # Windows deletes no open file
            (run.path / "lock").unlink(missing_ok=True)
    (run.path / "lock").unlink(missing_ok=True)
    try:
        run.path.rmdir()
    except OSError as error:
        raise SteradError(
            f"the files of {str(run.path)!r} are deleted, the folder is not: {error.strerror}"
        ) from error
    return size
