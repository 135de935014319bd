"""Checkpoints: exact contents, and refusal of damaged, foreign and malicious files."""

import os
import pickle
import random
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

from sterad.errors import SteradError
from sterad.experiments.checkpoint import (
    FORMAT,
    SCHEMA,
    load_checkpoint,
    save_checkpoint,
    save_hashed,
)
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


def assert_refused(file: Path, reason: str, owner: str = "run-1") -> None:
    """Require an error with the name of the file, the reason and the remedy."""
    with pytest.raises(SteradError, match=reason) as caught:
        load_checkpoint(file, owner)
    assert str(caught.value).startswith(repr(str(file)))
    assert f"delete {str(file)!r} to start from the beginning" in str(caught.value)


def test_a_loaded_state_equals_the_saved_one(file: Path) -> None:
    loaded = load_checkpoint(file, "run-1")
    assert same(loaded, STATE)
    assert loaded["bytes"].dtype == torch.uint8
    assert loaded["moments"][0]["cells"] == (0.5, None)
    assert [path.name for path in file.parent.iterdir()] == ["checkpoint.pt"]


def test_the_checkpoint_of_another_run_is_refused(file: Path) -> None:
    assert_refused(file, "belongs to 'run-1' and not to 'run-2'", owner="run-2")


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_refused(file: Path, fraction: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(fraction * len(content))])
    assert_refused(file, "does not match its SHA-256")


def test_every_flipped_bit_is_noticed(file: Path) -> None:
    rng, content = random.Random(0), file.read_bytes()
    for _ in range(200):
        broken = bytearray(content)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        file.write_bytes(broken)
        assert_refused(file, "does not match its SHA-256")


def test_a_compressed_bomb_is_refused_before_it_is_read(file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 50_000_000)
    add_hash(file)
    assert_refused(file, "it is compressed, which torch.save never does")


def test_a_tensor_larger_than_its_storage_is_refused(file: Path) -> None:
    save_checkpoint(file, "run-1", {"weights": torch.zeros(1).expand(10**12)})
    assert file.stat().st_size < 5_000
    assert_refused(file, "a tensor claims more elements than the file holds")


def add_hash(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content + b"\nsha256 " + sha256(content).hexdigest().encode() + b"\n")


def test_torch_can_read_the_file(file: Path) -> None:
    assert same(torch.load(file, weights_only=True)["state"], STATE)


def test_the_previous_file_is_kept_under_its_own_name(file: Path) -> None:
    previous = file.with_name("previous.pt")
    save_checkpoint(file, "run-1", {"step": 4}, previous)
    assert same(load_checkpoint(previous, "run-1"), STATE)
    assert load_checkpoint(file, "run-1") == {"step": 4}
    save_checkpoint(file, "run-1", {"step": 5}, previous)
    assert load_checkpoint(previous, "run-1") == {"step": 4}


@pytest.mark.parametrize(
    "content", [b"hello", b"PK\x03\x04", b"\x80", b".", b"{}", b"\0" * 5000, bytes(range(256))]
)
def test_foreign_bytes_are_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert_refused(file, "does not match its SHA-256")
    add_hash(file)
    assert_refused(file, "damaged")


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
    save_hashed(file, content)
    assert_refused(file, "damaged or was written by something else")


def test_another_schema_is_refused(file: Path) -> None:
    save_hashed(file, {"format": FORMAT, "schema": 99, "owner": "run-1", "state": {}})
    assert_refused(
        file, f"has schema 99 and this sterad reads {SCHEMA}: use the sterad that wrote it"
    )


class Malicious:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("source", ["torch", "pickle", "state"])
def test_a_file_that_could_run_code_is_refused(file: Path, source: str) -> None:
    folder = file.parent / "created-by-pickle"
    if source == "torch":
        save_hashed(file, Malicious(folder))
    elif source == "pickle":
        file.write_bytes(pickle.dumps(Malicious(folder)))
        add_hash(file)
    else:
        save_checkpoint(file, "run-1", {"weights": torch.zeros(2), "more": [Malicious(folder)]})
    assert_refused(file, "damaged" if source == "pickle" else "could run code, so it is refused")
    assert not folder.exists()
    torch.load(file, weights_only=False) if source != "pickle" else pickle.loads(file.read_bytes())
    assert folder.exists(), "an unsafe load runs the code"


def test_a_full_disk_leaves_the_old_checkpoint(file: Path) -> None:
    code = (
        "import resource, sys, torch; from pathlib import Path\n"
        "from sterad.experiments.checkpoint import save_checkpoint\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "save_checkpoint(Path(sys.argv[1]), 'run-1', {'weights': torch.zeros(100_000)})"
    )
    command = [sys.executable, "-c", code, str(file)]
    process = subprocess.run(command, capture_output=True, text=True)
    last = process.stderr.splitlines()[-1]
    assert last.startswith(f"sterad.errors.SteradError: cannot write {str(file)!r}: File too large")
    assert same(load_checkpoint(file, "run-1"), STATE)
    assert [path.name for path in file.parent.iterdir()] == ["checkpoint.pt"]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path / "no.pt", r"cannot be read \(No such file")


def test_a_fifo_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "checkpoint.pt")
    with pytest.raises(SteradError, match="it is a FIFO, a socket or a device"):
        load_checkpoint(tmp_path / "checkpoint.pt", "a")
