import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sterad import RunConfig
from sterad.data import Npz
from sterad.errors import SteradError

IMAGES = np.random.default_rng(0).integers(0, 256, (8, 6, 6), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 3, 0, 1, 2, 3])


def saved(tmp_path: Path, **changes: Any) -> Path:
    arrays = {
        "train_images": IMAGES,
        "train_labels": LABELS,
        "test_images": IMAGES[:4],
        "test_labels": LABELS[:4],
    } | changes
    np.savez(tmp_path / "mine.npz", **{k: v for k, v in arrays.items() if v is not None})
    return tmp_path


def test_images_floats_and_names(tmp_path: Path) -> None:
    root = saved(tmp_path, train_images=IMAGES / 255, class_names=np.array(["a", "b", "c", "d"]))
    data = Npz(root=root, npz_file="mine.npz", flip=True).load()
    np.testing.assert_array_equal(data.train_images[:, 0], IMAGES)
    assert isinstance(data.train_images, np.memmap)
    assert (data.class_names, data.flip) == (("a", "b", "c", "d"), True)
    assert Npz(root=root, npz_file="mine.npz").defaults().scale == pytest.approx(0.15 * 8 / 4)


def test_keras_array_names_and_full_path(tmp_path: Path) -> None:
    file = tmp_path / "k.npz"
    np.savez(file, x_train=IMAGES, y_train=LABELS, x_test=IMAGES, y_test=LABELS)
    data = Npz(root=tmp_path / "elsewhere", npz_file=str(file), classes=2, per_class=1).load()
    assert data.train_labels.tolist() == [0, 1]


def test_a_path_is_text_or_a_path(tmp_path: Path) -> None:
    root = saved(tmp_path)
    data = Npz(npz_file=root / "mine.npz").load()
    assert data.digest == Npz(root=root, npz_file="mine.npz").load().digest
    assert Npz(npz_file=Path("mine.npz")) == Npz(npz_file="mine.npz")
    config = RunConfig.of(dataset="npz", root=root, npz_file=Path("mine.npz"))
    assert config == RunConfig.of(dataset="npz", root=root, npz_file="mine.npz")
    assert RunConfig.from_dict(config.to_dict(with_paths=True)) == config


def test_images_that_are_not_square(tmp_path: Path) -> None:
    wide = np.random.default_rng(0).integers(0, 256, (8, 6, 9, 3), dtype=np.uint8)
    root = saved(tmp_path, train_images=wide, test_images=wide[:4])
    data = Npz(root=root, npz_file="mine.npz").load()
    np.testing.assert_array_equal(data.train_images, np.moveaxis(wide, 3, 1))
    smaller = Npz(root=root, npz_file="mine.npz", image_size=4, image_width=6).load()
    assert smaller.input_shape == (3, 4, 6)
    with pytest.raises(SteradError, match="image_width 6 is set without a height: give image_size"):
        Npz(root=root, npz_file="mine.npz", image_width=6)


def test_feature_vectors(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    root = saved(tmp_path, train_images=vectors, test_images=vectors[:4])
    assert Npz(root=root, npz_file="mine.npz").load().input_shape == (5,)
    with pytest.raises(SteradError, match="feature vectors"):
        Npz(root=root, npz_file="mine.npz", image_size=8).load()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_labels": None}, "has no array 'test_labels', only"),
        ({"train_labels": LABELS[:7]}, "mine.npz': there are 7 train labels for 8 images"),
        ({"train_images": np.array([{}] * 8, dtype=object)}, "is damaged.*save arrays of numbers"),
        ({"train_images": IMAGES.astype(int)}, "give uint8"),
        ({"class_names": np.array("ab")}, r"class_names as <U2 of shape \(\): save one text per"),
        ({"class_names": np.array(4)}, r"class_names as int64 of shape \(\): save one text per"),
        ({"class_names": np.array([b"\xff", b"b", b"c", b"d"])}, "mine.npz': .*codec can't decode"),
        ({"class_names": np.array(["\ud800", "b", "c", "d"])}, "is not valid Unicode"),
        ({"train_labels": np.array(3)}, r"labels are int64 of shape \(\)"),
        ({"train_labels": LABELS.astype("M8[s]")}, "labels are datetime64"),
    ],
)
def test_invalid_arrays_raise(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        Npz(root=saved(tmp_path, **changes), npz_file="mine.npz").load()


def test_invalid_files_raise(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="the dataset npz needs --npz-file: give its path"):
        Npz(root=tmp_path).load()
    missing = r"there is no '.*/nowhere\.npz' or 'nowhere\.npz': correct --npz-file or --root"
    with pytest.raises(SteradError, match=missing):
        Npz(root=tmp_path, npz_file="nowhere.npz").load()
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(SteradError, match=r"folder\.npz' is not a file: give the path of a \.npz"):
        Npz(root=tmp_path, npz_file="folder.npz").load()
    file = saved(tmp_path) / "mine.npz"
    content = bytearray(file.read_bytes())
    content[200] ^= 255
    file.write_bytes(content)
    with pytest.raises(SteradError, match="is damaged"):
        Npz(root=tmp_path, npz_file="mine.npz").load()
    file.write_bytes(content[:-300])
    np.save(tmp_path / "one.npy", IMAGES)
    (tmp_path / "text.npz").write_bytes(b"no archive at all")
    for name in ("mine.npz", "one.npy", "text.npz"):
        with pytest.raises(SteradError, match=r"is damaged.*: save arrays of numbers"):
            Npz(root=tmp_path, npz_file=name).load()


def npy(shape: tuple[int, ...], content: bytes, dtype: str = "|u1") -> bytes:
    """Return a .npy file whose header declares any shape."""
    file = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + content


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train_images", npy((1 << 20, 100, 100), b"x"), "bytes for the shape"),
        ("train_labels", npy((1 << 40,), b"", "<U0"), "bytes for the shape"),
        ("train_images", npy((1 << 27,), bytes(1 << 27)), "more than the limit"),
        ("train_labels", npy((4,), bytes(9)), "has more bytes than its shape"),
        ("train_labels", npy((4,), bytes(3)), "damaged"),
        ("train_labels", npy((-2, -2), bytes(4)), "damaged"),
        ("train_labels", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "damaged"),
        ("train_labels\0", npy((8,), bytes(8)), "damaged|no array 'train_labels'"),
        ("../train_labels", npy((8,), bytes(8)), "no array 'train_labels'"),
    ],
)
def test_hostile_members_raise_before_memory_is_allocated(
    tmp_path: Path,
    error_within_limits: Callable[..., str],
    name: str,
    content: bytes,
    message: str,
) -> None:
    file = saved(tmp_path, **{name.strip("./\0"): None}) / "mine.npz"
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name.strip(chr(0))}.npy", content)
    if "\0" in name:
        file.write_bytes(file.read_bytes().replace(b"train_labels.npy", b"train_\0labels.np"))
    found = error_within_limits(Npz(root=tmp_path, npz_file="mine.npz").load)
    assert re.search(message, found)
    assert "mine.npz'" in found


def test_mutated_files_give_the_same_images_or_an_error(tmp_path: Path) -> None:
    file = saved(tmp_path, class_names=np.array(["a", "b", "c", "d"])) / "mine.npz"
    whole, random = file.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(whole)
        for position in random.integers(0, len(whole), random.integers(1, 4)):
            content[position] = random.integers(256)
        file.write_bytes(content[: len(whole) - int(random.integers(0, 2) * random.integers(99))])
        try:
            found = Npz(root=tmp_path, npz_file="mine.npz").contents()
        except SteradError:
            continue
        np.testing.assert_array_equal(found.train.fetch(np.arange(8))[:, 0], IMAGES)
        assert found.train.labels.tolist() == LABELS.tolist()
