import fcntl
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sterad.data import Dataset, Mnist, cache
from sterad.data.cache import hold_lock
from sterad.data.dataset_files import check_cache
from sterad.errors import SteradError

Made = Callable[..., Path]


def entry_of(root: Path) -> Path:
    (entry,) = (root / ".sterad").glob("mnist-*")
    return entry


def same(first: Dataset, second: Dataset) -> bool:
    return bool(
        (first.train_images == second.train_images).all()
        and (first.test_labels == second.test_labels).all()
    )


def test_second_load_decodes_nothing(make_idx: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_idx()
    first = Mnist(root=root).load()
    monkeypatch.setattr(Mnist, "contents", lambda _: pytest.fail("read again"))
    second = Mnist(root=root).load()
    assert same(first, second)
    assert isinstance(second.train_images, np.memmap)
    assert not second.train_images.flags.writeable
    assert (second.class_names, second.flip) == (first.class_names, first.flip)


def test_entry_depends_on_the_selection_but_not_on_the_root(make_idx: Made) -> None:
    root = make_idx()
    keys = {Mnist(root=root, classes=n).key for n in (None, 2, 3)}
    assert len(keys) == 3
    assert Mnist(root=root).key == Mnist(root=root / "x").key == Mnist().key


def test_moved_data_keeps_its_cache(make_idx: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_idx()
    first = Mnist(root=root).load()
    moved = root.with_name(root.name + "-moved")
    root.rename(moved)
    monkeypatch.setattr(Mnist, "contents", lambda _: pytest.fail("read again"))
    assert same(first, Mnist(root=moved).load())


def test_changed_source_is_decoded_again(make_idx: Made) -> None:
    root = make_idx()
    before = Mnist(root=root).load()
    original = before.train_images[0].copy()
    file = root / "mnist" / "train-images-idx3-ubyte"
    content = bytearray(file.read_bytes())
    content[16] ^= 255
    file.write_bytes(content)
    os.utime(file, ns=(1, 1))
    after = Mnist(root=root).load()
    assert after.train_images[0, 0, 0, 0] != original[0, 0, 0]
    # Arrays that were mapped before do not change.
    np.testing.assert_array_equal(before.train_images[0], original)


def cut_short(entry: Path) -> None:
    os.truncate(entry / "train_images.npy", 1000)


def no_header(entry: Path) -> None:
    with open(entry / "test_images.npy", "r+b") as file:
        file.write(b"garbage!")


def other_shape(entry: Path) -> None:
    array = np.load(entry / "test_images.npy")
    np.save(entry / "test_images.npy", array.reshape(len(array), 1, 14, 56))


def no_manifest(entry: Path) -> None:
    (entry / "manifest.json").unlink()


def half_a_manifest(entry: Path) -> None:
    text = (entry / "manifest.json").read_text()
    (entry / "manifest.json").write_text(text[: len(text) // 2])


def no_labels(entry: Path) -> None:
    (entry / "train_labels.npy").unlink()


@pytest.mark.parametrize(
    "damage", [cut_short, no_header, other_shape, no_manifest, half_a_manifest, no_labels]
)
def test_damaged_entry_is_reported_and_rebuilt(
    make_idx: Made, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    root = make_idx()
    images = Mnist(root=root).load().train_images.copy()
    damage(entry_of(root))
    again = Mnist(root=root).load()
    np.testing.assert_array_equal(again.train_images, images)
    errors = capsys.readouterr().err
    assert str(entry_of(root)) in errors
    assert "rebuilding it" in errors
    cache.verify_entry(entry_of(root))


def test_check_detects_a_flipped_bit(make_idx: Made) -> None:
    root = make_idx()
    Mnist(root=root).load()
    assert check_cache("mnist", root) == [f"{entry_of(root)}: complete"]
    entry = entry_of(root)
    with open(entry / "train_images.npy", "r+b") as file:
        file.seek(500)
        byte = file.read(1)[0]
        file.seek(500)
        file.write(bytes([byte ^ 1]))
    (message,) = check_cache("mnist", root)
    assert "damaged (the checksum of train_images.npy differs) and removed" in message
    assert not entry.exists()
    Mnist(root=root).load()
    cache.verify_entry(entry_of(root))


def test_entry_of_an_old_format_is_rebuilt(make_idx: Made) -> None:
    root = make_idx()
    Mnist(root=root).load()
    file = entry_of(root) / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 0}))
    Mnist(root=root).load()
    assert json.loads(file.read_text())["format"] == cache.FORMAT


def test_read_only_root_uses_the_user_cache(
    make_idx: Made, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root, user = make_idx(), tmp_path_factory.mktemp("user")
    (root / ".sterad").write_text("a file stands where the folder would be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(user))
    first = Mnist(root=root).load()
    assert list(user.glob("sterad/*/mnist-*/manifest.json"))
    monkeypatch.setattr(Mnist, "contents", lambda _: pytest.fail("read again"))
    assert same(first, Mnist(root=root).load())


def test_no_writable_cache_raises(
    make_idx: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = make_idx()
    (root / ".sterad").touch()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(
        SteradError, match=r"cannot write the decoded images to the cache.*XDG_CACHE_HOME"
    ) as e:
        Mnist(root=root).load()
    assert str(root / ".sterad") in str(e.value)


def test_full_disk_raises(make_idx: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_idx()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "_save_array", full)
    with pytest.raises(SteradError, match="No space left on device"):
        Mnist(root=root).load()
    assert [one.name for one in (root / ".sterad").iterdir()] == ["lock"]


def load_in_a_process(root: str) -> float:
    return float(Mnist(root=Path(root)).load().train_images.mean())


def test_many_processes_build_one_entry(make_idx: Made) -> None:
    root = make_idx(packed=True)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        means = pool.map(load_in_a_process, [str(root)] * 6, chunksize=1)
    assert len(set(means)) == 1
    assert sorted(one.name for one in (root / ".sterad").iterdir()) == sorted(
        ["lock", entry_of(root).name]
    )


def test_killed_process_leaves_no_valid_entry(make_idx: Made) -> None:
    root = make_idx()
    words = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom sterad.data import Mnist, cache\n"
        "save = cache._save_array\n"
        "def die(file, chunks):\n"
        "    saved = save(file, chunks)\n"
        "    if file.name == 'test_images.npy': os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return saved\n"
        "cache._save_array = die\nMnist(root=Path(sys.argv[1])).load()"
    )
    ended = subprocess.run([sys.executable, "-c", words, str(root)], capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert not list((root / ".sterad").glob("mnist-*"))
    assert list((root / ".sterad").glob(".*.tmp"))
    Mnist(root=root).load()
    assert not list((root / ".sterad").glob(".*.tmp"))


def test_opening_does_not_read_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 100_000
    folder = tmp_path / ".sterad" / "large-0"
    images = cache.Chunks(count, lambda: [np.zeros((1000, 3, 8, 8), np.uint8)] * 100)
    labels = cache.Chunks(count, lambda: [np.zeros(count, np.int64)])
    cache.make_entry(tmp_path, "large-0", {"images": images, "labels": labels}, {}, [])
    monkeypatch.setattr(cache, "array_bytes", lambda _: pytest.fail("the images were read"))
    entry = cache.open_entry(tmp_path, folder)  # benchmarks/datasets.py measures its time
    assert isinstance(entry.arrays["images"], np.memmap)
    assert entry.arrays["images"].shape == (count, 3, 8, 8)
    shutil.rmtree(folder)


def test_lock_waits_or_raises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lock"
    with open(file, "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with (
            pytest.raises(SteradError, match="another process is decoding x: wait"),
            hold_lock(file, "decoding x", wait=False),
        ):
            pytest.fail("it was held")
        release = threading.Timer(0.2, lambda: fcntl.flock(other, fcntl.LOCK_UN))
        release.start()
        started = time.monotonic()
        with hold_lock(file, "decoding x"):
            assert time.monotonic() - started > 0.1
        release.join()
    assert "waiting for another process that is decoding x" in capsys.readouterr().err
