"""The command that repeats or continues a run, from the values in its record or config."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from sterad.cli.help import option_name
from sterad.results.stored_run import StoredRun

_COMPONENTS = ("method.name", "dataset.name", "stream.name")
_EXECUTION_DEFAULTS = {"device": "cpu", "precision": "float32", "threads": None}
"""Execution options that change the bits of a result; threads have no fixed default."""


def changed_paths(run: StoredRun) -> list[str] | None:
    """Return the settings that differ from their defaults; None if the run does not say."""
    if run.record is None:
        return None
    paths = run.record.provenance.get("changed")
    return [path for path in paths if path in run.settings] if isinstance(paths, list) else None


def repeat_command(run: StoredRun) -> str:
    """Return a `sterad train` command with the values of a run that are not defaults.

    Older records and unfinished runs do not say which values are defaults: they give all. An
    unfinished run is continued in its folder, a finished one is repeated in another.
    """
    method, dataset, stream = (run.value(path) for path in _COMPONENTS)
    parts = ["sterad", "train", method, "--dataset", dataset, "--stream", stream]
    parts += ["--seed", run.value("seed")]
    parts += [part for path, value in _given(run) for part in _option(path, value)]
    if run.record is not None:
        parts += _execution_options(run.record.execution)
    parts += ["--out", "repeated" if run.record is not None else str(run.path.parent)]
    return shlex.join(parts)


def repeat_note(run: StoredRun) -> str:
    """Return what the command needs beside its options, or an empty text."""
    kinds = [path.partition(".")[2] for path in run.settings if path.startswith("digests.")]
    if not kinds:
        return ""
    return f"It also needs your own {', '.join(kinds)}, of which the run has only digests."


def _given(run: StoredRun) -> Iterator[tuple[str, Any]]:
    changed = changed_paths(run)
    for path, value in run.settings.items():
        if path in (*_COMPONENTS, "seed") or path.startswith("digests."):
            continue
        if value is not None if changed is None else path in changed:
            yield path, value


def _option(path: str, value: Any) -> list[str]:
    option = option_name(path.rpartition(".")[2])
    if isinstance(value, bool):
        return [option if value else f"--no-{option[2:]}"]
    if isinstance(value, tuple) and any(isinstance(item, str) for item in value):
        return [part for item in value for part in (option, item)]
    items = value if isinstance(value, tuple) else (value,)
    return [option, *("none" if item is None else str(item) for item in items)]


def _execution_options(execution: Mapping[str, Any]) -> list[str]:
    return [
        part
        for name, default in _EXECUTION_DEFAULTS.items()
        if execution.get(name, default) != default
        for part in (option_name(name), str(execution[name]))
    ]
