import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sterad.data import DATASETS, FashionMnist, Kmnist, Mnist
from sterad.data.mnist import read_idx
from sterad.errors import SteradError

Made = Callable[..., Path]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dotted", [False, True])
@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("mnist", "mnist"),
        ("mnist", "MNIST/raw"),
        ("fmnist", "fashion-mnist"),
        ("kmnist", "kmnist"),
        ("kmnist", "."),
    ],
)
def test_every_accepted_file_name(
    make_idx: Made, name: str, folder: str, packed: bool, dotted: bool
) -> None:
    if folder == ".":
        root = make_idx("here", packed, dotted) / "here"
    else:
        root = make_idx(folder, packed, dotted)
    data = DATASETS[name](root=root).load()  # type: ignore[call-arg]
    assert data.train_images.shape == (20, 1, 28, 28)
    assert data.test_labels.tolist() == list(range(10))
    expected = np.random.default_rng(20).integers(0, 256, (20, 28, 28), dtype=np.uint8)
    np.testing.assert_array_equal(data.train_images[:, 0], expected)
    assert data.flip is (name == "fmnist")


def test_debian_folder_of_fashion_mnist(
    make_idx: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_idx("usr/share", packed=True) / "usr" / "share"
    monkeypatch.setattr(FashionMnist, "system_folders", (place,))
    data = FashionMnist(root=tmp_path / "nowhere").load()
    assert len(data.train_labels) == 20
    assert not (tmp_path / "nowhere").exists(), "the cache lies with the user"


def test_wrong_number_of_labels_raises(make_idx: Made) -> None:
    root = make_idx("kmnist")
    labels = root / "kmnist" / "train-labels-idx1-ubyte"
    labels.write_bytes(struct.pack(">HBBI", 0, 8, 1, 19) + bytes(19))
    with pytest.raises(
        SteradError,
        match=r"train-images-idx3-ubyte' has images of shape \(20, .* labels of shape \(19,\)",
    ):
        Kmnist(root=root).load()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is damaged"),
        (b"\x00\x00\x08", "is damaged"),
        (b"\x89PNG\r\n\x1a\n", "not an idx file of bytes"),
        (struct.pack(">HBBI", 0, 0x0D, 1, 4) + bytes(16), "not an idx file of bytes"),
        (struct.pack(">HBBI", 0, 8, 1, 9) + bytes(8), "must have 9 values.*has 8"),
        (struct.pack(">HBBI", 0, 8, 1, 9) + bytes(10), "must have 9 values.*has more"),
        (struct.pack(">HBB3I", 0, 8, 3, 2**31, 2**31, 9), "declares the shape"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_invalid_files_raise(tmp_path: Path, content: bytes, message: str, packed: bool) -> None:
    file = tmp_path / ("x.gz" if packed else "x")
    file.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(SteradError, match=message):
        read_idx(file)


@pytest.mark.parametrize("packed", [False, True])
def test_bombs_raise_before_memory_is_allocated(
    tmp_path: Path, packed: bool, error_within_limits: Callable[..., str]
) -> None:
    file = tmp_path / ("x.gz" if packed else "x")
    for shape in ((1 << 31,), (1 << 10, 1 << 10, 1 << 11), (1 << 16,) * 4, (1,)):
        content = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + bytes(1 << 25)
        file.write_bytes(gzip.compress(content) if packed else content)
        assert error_within_limits(lambda: read_idx(file)).startswith(f"'{file}' ")


def test_truncated_gzip_raises(make_idx: Made) -> None:
    file = make_idx("mnist", packed=True) / "mnist" / "t10k-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(SteradError, match=r"t10k-images-idx3-ubyte.gz' is damaged"):
        Mnist(root=file.parents[1]).load()


def test_real_mnist(real_data: Callable[[str], Path]) -> None:
    data = Mnist(root=real_data("mnist")).load()
    assert data.train_images.shape == (60_000, 1, 28, 28)
    assert data.test_images.shape == (10_000, 1, 28, 28)
    assert data.train_labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert data.test_labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert data.train_images.mean() / 255 == pytest.approx(0.1307, abs=5e-5)


def test_real_fashion_mnist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    debian = Path("/usr/share/datasets/fashion-mnist")
    if not debian.is_dir():
        pytest.skip("the Debian package dataset-fashion-mnist is not installed")
    monkeypatch.setattr(FashionMnist, "system_folders", (debian,))
    data = FashionMnist(root=tmp_path).load()
    assert data.train_images.shape == (60_000, 1, 28, 28)
    assert data.train_labels[:5].tolist() == [9, 0, 0, 3, 0]
    assert data.train_images.mean() / 255 == pytest.approx(0.2860, abs=5e-5)
