"""Checkpoints: plain dictionaries, written by rename, never unpickled."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import torch

from sterad.atomic import write_atomically
from sterad.errors import SteradError

FORMAT = "sterad checkpoint"
SCHEMA = 1


def save_checkpoint(path: Path, owner: str, state: dict[str, Any]) -> None:
    """Write the state of `owner` (a run's id, say) whole or not at all."""
    content = {"format": FORMAT, "schema": SCHEMA, "owner": owner, "state": state}
    write_atomically(path, lambda file: torch.save(content, file))


def load_checkpoint(path: Path, owner: str, remedy: str | None = None) -> dict[str, Any]:
    """Read the state of `owner`; a file that would run code, or another's, is refused.

    remedy: what the user can do then; for a run's own checkpoint, to delete it.
    """
    remedy = remedy or f"delete {str(path)!r} to start from the beginning"
    try:
        with warnings.catch_warnings():
            # What torch thinks of a foreign pickle's protocol is no help: it is refused anyway.
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise SteradError(
            f"{str(path)!r} holds something else than plain tensors and values, and reading it "
            f"could run code, so it is refused: {remedy}"
        ) from error
    except Exception as error:  # torch promises no type of error for bytes that are none of its own
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise SteradError(
            f"{str(path)!r} is damaged or cut short, or no file of sterad ({reason}): {remedy}"
        ) from error
    parts = {"format", "schema", "owner", "state"}
    if not isinstance(content, dict) or content.get("format") != FORMAT or parts - set(content):
        raise SteradError(f"{str(path)!r} is not a checkpoint of sterad: {remedy}")
    if content["schema"] != SCHEMA:
        raise SteradError(
            f"{str(path)!r} has schema {content['schema']} and this sterad reads {SCHEMA}: "
            f"use the sterad that wrote it, or {remedy}"
        )
    if content["owner"] != owner:
        raise SteradError(
            f"{str(path)!r} belongs to {content['owner']!r} and not to {owner!r}: {remedy}"
        )
    state: dict[str, Any] = content["state"]
    return state
