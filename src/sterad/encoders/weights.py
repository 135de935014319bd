"""Weights of an encoder from a file: a state dict of torch, or safetensors."""

import importlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sterad.errors import SteradError
from sterad.plugins import object_digest

WRAPPERS = ("state_dict", "model")
"""Keys under which checkpoints of other libraries hold the state dict."""
MAX_NAMES = 5
"""Names of weights in an error message."""


def load_weights(module: nn.Module, path: Path) -> None:
    """Load the weights of a file, whose names may have a prefix such as `module.`."""
    expected = module.state_dict()
    if not expected:
        raise SteradError(f"the encoder has no weights, and {str(path)!r} holds some: leave it out")
    found = _strip_prefix(_read(path), expected.keys())
    missing, unexpected = expected.keys() - found.keys(), found.keys() - expected.keys()
    if missing or unexpected:
        raise SteradError(
            f"the weights in {str(path)!r} do not fit the encoder: missing are {_join(missing)}; "
            f"unexpected are {_join(unexpected)}; give a file of the same architecture"
        )
    for name, value in found.items():
        if value.shape != expected[name].shape:
            raise SteradError(
                f"{name} has the shape {tuple(value.shape)} in {str(path)!r} and "
                f"{tuple(expected[name].shape)} in the encoder: give a file of the same "
                "architecture and width"
            )
    module.load_state_dict(found)


def weights_digest(path: Path) -> str:
    """Return a hash of the weights in a file, whatever its name and format."""
    try:
        facts = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return _digest_of(path.resolve(), facts.st_mtime_ns, facts.st_size)


@lru_cache
def _digest_of(path: Path, modified: int, size: int) -> str:
    """Return the hash of a file that was modified at that time: a study has many configs."""
    return object_digest(_read(path))


def _read(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name; nothing in the file is executed."""
    if path.suffix == ".safetensors":
        values = _read_safetensors(path)
    else:
        try:
            values = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise _unreadable(path, error) from error
    for key in WRAPPERS:
        if isinstance(values, Mapping) and isinstance(values.get(key), Mapping):
            values = values[key]
    is_state = isinstance(values, Mapping) and values
    if not (is_state and all(isinstance(one, Tensor) for one in values.values())):
        raise SteradError(
            f"{str(path)!r} holds no state dict: write it with torch.save(module.state_dict(), ...)"
        )
    return dict(values)


def _read_safetensors(path: Path) -> Any:
    try:
        library = importlib.import_module("safetensors.torch")
    except ImportError as error:
        raise SteradError(
            f"{str(path)!r} needs the package safetensors, which is not installed ({error}): "
            "pip install safetensors, or give a state dict written by torch.save"
        ) from error
    try:
        return library.load_file(path)
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> SteradError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return SteradError(
        f"the weights {str(path)!r} cannot be read ({reason}): give a file of safetensors, or one "
        "that torch.save wrote from a state dict"
    )


def _strip_prefix(values: dict[str, Tensor], expected: Iterable[str]) -> dict[str, Tensor]:
    """Return the values below the prefix under which exactly the expected names are.

    Without such a prefix, the one that all names share is removed, so that an error shows the
    names that differ.

    >>> list(_strip_prefix({"encoder.a": torch.ones(1), "head.b": torch.ones(1)}, ["a"]))
    ['a']
    """
    wanted = set(expected)
    parts = (name.split(".") for name in values)
    prefixes = {".".join([*one[:end], ""]) for one in parts for end in range(1, len(one))}
    shared = {"": values}
    for prefix in ("", *sorted(prefixes, key=len)):
        below = {n.removeprefix(prefix): v for n, v in values.items() if n.startswith(prefix)}
        if below.keys() == wanted:
            return below
        if len(below) == len(values):
            shared[prefix] = below
    return max(shared.values(), key=lambda below: len(below.keys() & wanted))


def _join(names: Iterable[str]) -> str:
    ordered = sorted(names)
    rest = len(ordered) - MAX_NAMES
    more = f" and {rest} more" if rest > 0 else ""
    return (", ".join(ordered[:MAX_NAMES]) or "none") + more
