"""Continue an interrupted run: from its newest readable checkpoint, under unchanged conditions.

A result depends on more than the values in the id: other data, code, versions or instructions of
the processor change its bits. They are stored when a run starts and compared when it continues.
"""

import importlib.metadata
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch

from sterad.errors import SteradError
from sterad.experiments.checkpoint import load_checkpoint
from sterad.experiments.config import RunConfig, changed_digests
from sterad.experiments.objects import DIGEST_SUFFIX
from sterad.experiments.session import Session
from sterad.files import reading
from sterad.results.run_directory import RunDirectory
from sterad.torch_private import has_bfloat16_units


@dataclass(frozen=True)
class Start:
    """Where a run starts: at the beginning, or from a checkpoint after accepted changes."""

    conditions: Mapping[str, str]
    changes: tuple[str, ...] = ()
    """What has changed between interruptions and continuations of the run so far."""
    checkpoint: Path | None = None
    """The checkpoint that the run continues from."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """The state of its session."""

    def restore(self, session: Session) -> None:
        """Bring a session to the state of the checkpoint, if there is one."""
        if self.checkpoint is not None:
            with reading(self.checkpoint, _remedy(self.checkpoint)):
                session.load_state_dict(dict(self.state))

    def state_dict(self, session: Session) -> dict[str, Any]:
        """Return the content of a checkpoint: a session, and what its bits depend on."""
        conditions, changes = dict(self.conditions), list(self.changes)
        return {"session": session.state_dict(), "conditions": conditions, "changes": changes}


def find_start(
    session: Session, folder: RunDirectory, config: RunConfig, accept_changes: bool
) -> Start:
    """Read the run's checkpoint, if it has one; refuse changed conditions; write nothing.

    An unfinished run that differs in nothing but the user's own data or code counts as this run;
    of several, the one with the newest checkpoint.
    """
    device = session.learner.problem.execution.device
    conditions = {"data": session.data_digest, **current_conditions(device)}
    origin, changed = folder, list[str]()
    lock: AbstractContextManager[None] = nullcontext()
    if folder.newest_checkpoint is None:
        earlier = [
            (file.stat().st_mtime_ns, one, kinds)
            for one, kinds in earlier_versions(config, folder.path.parent)
            if (file := one.newest_checkpoint) and not one.record.exists()
        ]
        if not earlier:
            return Start(conditions)
        _, origin, kinds = max(earlier, key=itemgetter(0))
        changed, lock = [f"the {kind} changed" for kind in kinds], origin.locked()
    with lock:  # of the other run, which may still be running
        file, saved = _load_newest(origin)
    with reading(file, _remedy(file)):
        changed += _changes(saved["conditions"], conditions)
        start = Start(conditions, (*saved["changes"], *changed), file, saved["session"])
    if changed and not accept_changes:
        raise SteradError(
            f"the run {origin.path.name} cannot be continued as it began: {'; '.join(changed)}. "
            f"Restore what changed, delete {str(origin.path)!r} to start again, or continue with "
            "--accept-changes (in Python accept_changes=True), which marks the record"
        )
    return start


def _load_newest(folder: RunDirectory) -> tuple[Path, dict[str, Any]]:
    """Load the newest checkpoint; if it is damaged, load the one before and print a warning."""
    newest, previous = folder.checkpoint, folder.previous_checkpoint
    if newest.exists():
        try:
            return newest, load_checkpoint(newest, folder.path.name, _remedy(newest))
        except SteradError as error:
            if not previous.exists():
                raise
            found = load_checkpoint(previous, folder.path.name, _remedy(previous))
            reason = str(error).partition(": delete ")[0]
            print(f"sterad: {reason}; continuing from {previous.name}", file=sys.stderr)
            return previous, found
    return previous, load_checkpoint(previous, folder.path.name, _remedy(previous))


def _remedy(checkpoint: Path) -> str:
    return f"delete {str(checkpoint.parent)!r} to start from the beginning"


def current_conditions(device: str) -> dict[str, str]:
    """Return versions and processor features on which the bits of a result depend."""
    if torch.device(device).type == "cuda":
        processor = torch.cuda.get_device_name(device)
    else:
        units = " with bfloat16" if has_bfloat16_units() else ""
        processor = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}{units}"
    versions = {name: importlib.metadata.version(name) for name in ("sterad", "torch", "numpy")}
    return versions | {"processor": processor}


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        "the data changed" if name == "data" else f"{name} was {before[name]} and is {now[name]}"
        for name in changed_digests(before, now)
        if name in before and name in now
    ]


def earlier_versions(config: RunConfig, out: Path) -> Iterator[tuple[RunDirectory, list[str]]]:
    """Yield runs under `out` that differ only in their data or code, and what differs.

    A run of another object, such as other weights, is no version of this one.
    """
    values = config.to_dict()
    values.pop("digests", None)
    for path in sorted(out.glob(f"{config.id.rpartition('-')[0]}-*")):
        run = RunDirectory(out, path.name)
        try:
            other = (run.read_config() or {}).get("config", {})
            changed = changed_digests(dict(config.digests), dict(other.pop("digests", {})))
        except (SteradError, ValueError, TypeError):
            continue  # reading that run reports what is wrong with it
        is_other = any(kind.endswith(DIGEST_SUFFIX) for kind in changed)
        if changed and not is_other and other == values:
            yield run, changed


def describe_earlier_versions(config: RunConfig, out: Path) -> list[str]:
    """Return a sentence if finished runs differ only in their data or code, else nothing."""
    found = [(run, kinds) for run, kinds in earlier_versions(config, out) if run.record.exists()]
    if not found:
        return []
    first, kinds = found[0][0].path.name, sorted({kind for _, one in found for kind in one})
    which = first if len(found) == 1 else f"{len(found)} earlier runs, for example {first},"
    return [f"{which} had different {' and '.join(kinds)}: this is a new run, {config.id}"]
