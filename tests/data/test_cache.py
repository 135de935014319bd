import fcntl
import json
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sterad.data import Core50, Dataset, Mnist, TinyImageNet, cache
from sterad.data.arrays import array_digest
from sterad.data.cache import cache_folder, hold_lock
from sterad.data.dataset_files import check_cache
from sterad.errors import SteradError

Made = Callable[..., Path]


def entry_of(root: Path) -> Path:
    (entry,) = cache_folder(root).glob("mnist-*")
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


def change_manifest(entry: Path, **changes: Any) -> None:
    """Change a manifest and give it the right checksum, as a hostile program would."""
    file = entry / "manifest.json"
    manifest = json.loads(file.read_text()) | changes
    manifest.pop("sha256")
    file.write_text(json.dumps(manifest | {"sha256": cache._manifest_digest(manifest)}))


def other_class_name(entry: Path) -> None:
    file = entry / "manifest.json"
    file.write_text(file.read_text().replace('["0", "1"', '["0", "8"'))


def manifest_of_lists(entry: Path) -> None:
    (entry / "manifest.json").write_text("[[]]")


def deep_manifest(entry: Path) -> None:
    (entry / "manifest.json").write_text("[" * 100_000)


def arrays_as_list(entry: Path) -> None:
    change_manifest(entry, arrays=["train_images"])


def arrays_as_numbers(entry: Path) -> None:
    change_manifest(entry, arrays={"train_images": 3})


def sources_as_null(entry: Path) -> None:
    change_manifest(entry, sources=None)


def array_outside(entry: Path) -> None:
    arrays = json.loads((entry / "manifest.json").read_text())["arrays"]
    shutil.copy(entry / "train_images.npy", entry.parent / "x.npy")
    change_manifest(entry, arrays=arrays | {"../x": arrays["train_images"]})


def objects(entry: Path) -> None:
    np.save(entry / "train_labels.npy", np.array([{}] * 20), allow_pickle=True)
    arrays = json.loads((entry / "manifest.json").read_text())["arrays"]
    arrays["train_labels"]["bytes"] = (entry / "train_labels.npy").stat().st_size
    change_manifest(entry, arrays=arrays)


def flipped_label(entry: Path) -> None:
    content = bytearray((entry / "train_labels.npy").read_bytes())
    content[-8] ^= 1
    (entry / "train_labels.npy").write_bytes(content)


DAMAGES = [
    *(cut_short, no_header, other_shape, no_manifest, half_a_manifest, no_labels, flipped_label),
    *(other_class_name, manifest_of_lists, deep_manifest, arrays_as_list, arrays_as_numbers),
    *(sources_as_null, array_outside, objects),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_entry_is_reported_and_rebuilt(
    make_idx: Made, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    root = make_idx()
    before = Mnist(root=root).load()
    images = before.train_images.copy()
    damage(entry_of(root))
    again = Mnist(root=root).load()
    np.testing.assert_array_equal(again.train_images, images)
    np.testing.assert_array_equal(again.train_labels, before.train_labels)
    assert again.class_names == before.class_names
    errors = capsys.readouterr().err
    assert str(entry_of(root)) in errors
    assert "it is decoded again" in errors
    cache.verify_entry(root, entry_of(root))


def test_check_detects_a_flipped_bit(make_idx: Made) -> None:
    root = make_idx()
    Mnist(root=root).load()
    assert check_cache("mnist", root) == [f"'{entry_of(root)}' is complete"]
    entry = entry_of(root)
    with open(entry / "train_images.npy", "r+b") as file:
        file.seek(500)
        byte = file.read(1)[0]
        file.seek(500)
        file.write(bytes([byte ^ 1]))
    (message,) = check_cache("mnist", root)
    assert "(the checksum of train_images differs)" in message
    assert message.endswith("It was removed")
    assert not entry.exists()
    Mnist(root=root).load()
    cache.verify_entry(root, entry_of(root))


def test_check_detects_a_changed_source(make_idx: Made) -> None:
    root = make_idx()
    Mnist(root=root).load()
    entry, source = entry_of(root), root / "mnist" / "t10k-images-idx3-ubyte"
    content = bytearray(source.read_bytes())
    content[-1] ^= 1
    source.write_bytes(content)
    assert "have changed" in check_cache("mnist", root)[0]
    # As if the filesystem did not keep times.
    change_manifest(entry, sources=cache._file_stamps(root, list(_sources(entry))))
    (message,) = check_cache("mnist", root)
    assert "(the content of the source files differs)" in message
    assert not entry.exists()


def _sources(entry: Path) -> dict[str, list[int]]:
    sources: dict[str, list[int]] = json.loads((entry / "manifest.json").read_text())["sources"]
    return sources


def test_every_image_file_is_a_source(make_tiny: Made, make_core50: Made) -> None:
    for config in (TinyImageNet(root=make_tiny()), Core50(root=make_core50())):
        config.load()
        (entry,) = cache_folder(config.root_folder).glob(f"{config.name}-*")
        images = [*config.root_folder.rglob("*.JPEG"), *config.root_folder.rglob("*.png")]
        stored = {config.root_folder / name for name in _sources(entry)}
        assert {one for one in images if config.name[:4] in str(one)} <= stored


def own_by_another(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Let a folder appear to belong to another user, who is not root."""
    if os.getuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)


def plant(entry: Path) -> None:
    """Replace the images of an entry, with all checksums right."""
    arrays = json.loads((entry / "manifest.json").read_text())["arrays"]
    evil = np.zeros_like(np.load(entry / "train_images.npy"))
    np.save(entry / "train_images.npy", evil)
    arrays["train_images"]["sha256"] = array_digest(evil)
    change_manifest(entry, arrays=arrays)


def test_entry_of_another_user_is_not_used(
    make_idx: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder to another user")
    root = make_idx()
    Mnist(root=root).load()
    plant(entry_of(root))
    own_by_another(monkeypatch, entry_of(root))
    assert Mnist(root=root).load().train_images.any()
    assert "belongs to another user" in capsys.readouterr().err
    plant(entry_of(root))
    entry_of(root).chmod(0o777)
    assert Mnist(root=root).load().train_images.any()
    assert "every user can write to it" in capsys.readouterr().err


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("is_open", [False, True])
def test_cache_folder_of_another_user_is_refused(
    make_idx: Made, monkeypatch: pytest.MonkeyPatch, level: int, is_open: bool
) -> None:
    root = make_idx()
    Mnist(root=root).load()
    plant(entry_of(root))
    folder = entry_of(root).parents[level]
    folder.chmod(0o777) if is_open else own_by_another(monkeypatch, folder)
    with pytest.raises(SteradError, match="set XDG_CACHE_HOME to a folder of your own"):
        Mnist(root=root).load()


def test_entry_in_the_root_is_not_used(make_idx: Made) -> None:
    root = make_idx()
    Mnist(root=root).load()
    plant(entry_of(root))
    shutil.move(entry_of(root), root / ".sterad" / entry_of(root).name)
    assert Mnist(root=root).load().train_images.any()


def test_entry_of_an_old_format_is_rebuilt(make_idx: Made) -> None:
    root = make_idx()
    Mnist(root=root).load()
    file = entry_of(root) / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 0}))
    Mnist(root=root).load()
    assert json.loads(file.read_text())["format"] == cache.FORMAT


def test_nothing_is_written_to_the_root(make_idx: Made) -> None:
    root = make_idx()
    Mnist(root=root).load()
    assert [one.name for one in root.iterdir()] == ["mnist"]
    for folder in (entry_of(root), *entry_of(root).parents[:2]):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_no_writable_cache_raises(
    make_idx: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = make_idx()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(
        SteradError, match=r"cannot write the decoded images to the cache.*XDG_CACHE_HOME"
    ):
        Mnist(root=root).load()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: 1 / 0)
    with pytest.raises(SteradError, match="set XDG_CACHE_HOME to a folder of your own"):
        Mnist(root=root).load()


def test_full_disk_raises(make_idx: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_idx()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "_save_array", full)
    with pytest.raises(SteradError, match="No space left on device"):
        Mnist(root=root).load()
    assert [one.name for one in cache_folder(root).iterdir()] == ["lock"]


def load_in_a_process(root: str) -> float:
    return float(Mnist(root=Path(root)).load().train_images.mean())


def test_many_processes_build_one_entry(make_idx: Made) -> None:
    root = make_idx(packed=True)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        means = pool.map(load_in_a_process, [str(root)] * 6, chunksize=1)
    assert len(set(means)) == 1
    assert sorted(one.name for one in cache_folder(root).iterdir()) == sorted(
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
    assert not list(cache_folder(root).glob("mnist-*"))
    assert list(cache_folder(root).glob(".*.tmp"))
    Mnist(root=root).load()
    assert not list(cache_folder(root).glob(".*.tmp"))


def test_opening_does_not_read_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 100_000
    images = cache.Chunks(count, lambda: [np.zeros((1000, 3, 8, 8), np.uint8)] * 100)
    labels = cache.Chunks(count, lambda: [np.zeros(count, np.int64)])
    cache.make_entry(tmp_path, "large-0", {"images": images, "labels": labels}, {}, [])
    monkeypatch.setattr(cache, "array_bytes", lambda _: pytest.fail("the images were read"))
    entry = cache.open_entry(tmp_path, "large-0")  # benchmarks/datasets.py measures its time
    assert isinstance(entry.arrays["images"], np.memmap)
    assert entry.arrays["images"].shape == (count, 3, 8, 8)
    shutil.rmtree(cache_folder(tmp_path))


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
