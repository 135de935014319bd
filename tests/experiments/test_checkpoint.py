import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from sterad.errors import SteradError
from sterad.experiments.checkpoint import FORMAT, SCHEMA, load_checkpoint, save_checkpoint
from sterad.testing.method import same

STATE: dict[str, Any] = {
    "step": 3,
    "weights": {"layer.weight": torch.arange(6.0).reshape(2, 3)},
    "bytes": torch.arange(200, dtype=torch.uint8),
    "moments": [{"cells": (0.5, None), "accuracy": 1 / 3}],
    "rng": torch.Generator().manual_seed(1).get_state(),
    "name": "größe",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    saved = tmp_path / "checkpoint.pt"
    save_checkpoint(saved, "run-1", STATE)
    return saved


def refused(file: Path, told: str, owner: str = "run-1") -> None:
    """Check that the file is refused in a sentence with its name, the reason and the remedy."""
    with pytest.raises(SteradError, match=told) as caught:
        load_checkpoint(file, owner)
    assert str(caught.value).startswith(repr(str(file)))
    assert f"delete {str(file)!r} to start from the beginning" in str(caught.value)


def test_what_was_saved_comes_back_to_the_bit(file: Path) -> None:
    loaded = load_checkpoint(file, "run-1")
    assert same(loaded, STATE)
    assert loaded["bytes"].dtype == torch.uint8
    assert loaded["moments"][0]["cells"] == (0.5, None)
    assert [one.name for one in file.parent.iterdir()] == ["checkpoint.pt"]


def test_another_owner_is_named(file: Path) -> None:
    refused(file, "belongs to 'run-1' and not to 'run-2'", owner="run-2")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_file_cut_short_is_damaged(file: Path, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    refused(file, r"is damaged, truncated or .+ \(.+\)|holds more than plain")


def test_whatever_is_wrong_with_the_bytes_is_told_in_a_sentence(file: Path) -> None:
    rng, content, told = random.Random(0), file.read_bytes(), 0
    for _ in range(150):
        broken = bytearray(content)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        file.write_bytes(broken)
        try:
            load_checkpoint(file, "run-1")
        except SteradError as error:
            told += repr(str(file)) in str(error)
    assert told > 20


@pytest.mark.parametrize(
    "content", [b"hello", b"PK\x03\x04", b"\x80", b".", b"{}", b"\0" * 5000, bytes(range(256))]
)
def test_foreign_bytes_are_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    refused(file, "damaged|holds more than plain")


@pytest.mark.parametrize(
    "content",
    [
        [1, 2],
        {"weights": torch.zeros(2)},
        {"format": "another", "schema": 1, "owner": "run-1", "state": {}},
        {"format": FORMAT},
        {"format": FORMAT, "schema": SCHEMA, "owner": "run-1"},
    ],
)
def test_foreign_checkpoints_are_refused(file: Path, content: Any) -> None:
    torch.save(content, file)
    refused(file, "is not a checkpoint of sterad")


def test_another_schema_is_told(file: Path) -> None:
    torch.save({"format": FORMAT, "schema": 99, "owner": "run-1", "state": {}}, file)
    refused(file, f"has schema 99 and this sterad reads {SCHEMA}: use the sterad that wrote it")


class Evil:
    """An object whose unpickling makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("how", ["torch", "pickle", "inside"])
def test_a_file_that_would_run_code_is_refused_and_does_not_run(file: Path, how: str) -> None:
    folder = file.parent / "made-by-evil"
    if how == "torch":
        torch.save(Evil(folder), file)
    elif how == "pickle":
        file.write_bytes(pickle.dumps(Evil(folder)))
    else:
        save_checkpoint(file, "run-1", {"weights": torch.zeros(2), "more": [Evil(folder)]})
    refused(file, "reading it could run code, so it is refused")
    assert not folder.exists()
    torch.load(file, weights_only=False) if how != "pickle" else pickle.loads(file.read_bytes())
    assert folder.exists(), "the file would have run code, or this test shows nothing"


def test_no_room_leaves_the_old_checkpoint(file: Path) -> None:
    words = (
        "import resource, sys, torch; from pathlib import Path\n"
        "from sterad.experiments.checkpoint import save_checkpoint\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "save_checkpoint(Path(sys.argv[1]), 'run-1', {'weights': torch.zeros(100_000)})"
    )
    command = [sys.executable, "-c", words, str(file)]
    ended = subprocess.run(command, capture_output=True, text=True)
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(f"sterad.errors.SteradError: cannot write {str(file)!r}: File too large")
    assert same(load_checkpoint(file, "run-1"), STATE)
    assert [one.name for one in file.parent.iterdir()] == ["checkpoint.pt"]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    refused(tmp_path / "no.pt", "damaged, truncated or .*No such file")
