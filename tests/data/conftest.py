"""Fixtures: small datasets in the layouts of the official archives, and the real ones."""

import gzip
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Images = npt.NDArray[np.uint8]


@pytest.fixture(autouse=True)
def _no_other_data(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep the tests away from the user's data and cache."""
    monkeypatch.delenv("STERAD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr("sterad.data.mnist.FashionMnist.system_folders", ())


@pytest.fixture
def real_data() -> Callable[[str], Path]:
    """Return a function from a folder name to the root of the real data that contains it."""

    def find(folder: str) -> Path:
        root = os.environ.get("STERAD_TEST_DATA")
        if not root:
            pytest.skip("STERAD_TEST_DATA, the folder of the real datasets, is not set")
        if not (Path(root) / folder).exists():
            pytest.skip(f"there is no {folder} where STERAD_TEST_DATA points to")
        return Path(root)

    return find


def pixels(count: int, *shape: int) -> Images:
    return np.random.default_rng(count).integers(0, 256, (count, *shape), dtype=np.uint8)


def pickled_by_python2(value: Any) -> bytes:
    """Pickle a CIFAR dictionary as Python 2 did: protocol 2, all strings bytes, old numpy names."""

    def text(word: bytes) -> bytes:
        return b"T" + struct.pack("<I", len(word)) + word

    def array(one: Images) -> bytes:
        shape = b"".join(b"J" + struct.pack("<i", n) for n in one.shape)
        return (
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
            b"(K\x01(" + shape + b"tcnumpy\ndtype\n(U\x02u1K\x00K\x01tR"
            b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
            + text(one.tobytes())
            + b"tb"
        )

    def one(item: Any) -> bytes:
        if isinstance(item, np.ndarray):
            return array(item)
        if isinstance(item, list):
            return b"](" + b"".join(map(one, item)) + b"e"
        if isinstance(item, bytes):
            return text(item)
        return b"J" + struct.pack("<i", item)

    return b"\x80\x02}(" + b"".join(one(k) + one(v) for k, v in value.items()) + b"u."


@pytest.fixture
def cifar_images() -> tuple[Images, npt.NDArray[np.int64]]:
    """Return the six images and labels of the small CIFAR files."""
    return pixels(6, 3, 32, 32), np.array([3, 1, 0, 2, 1, 3])


@pytest.fixture
def make_cifar(
    tmp_path: Path, cifar_images: tuple[Images, npt.NDArray[np.int64]]
) -> Callable[..., Path]:
    """Return a function that writes a CIFAR folder: (name, layout) -> root."""
    images, labels = cifar_images
    flat = images.reshape(len(images), -1)

    def write(folder: str, name: str, content: bytes) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_bytes(content)

    def records(rows: slice, coarse: bool) -> bytes:
        columns = [labels[rows, None].astype(np.uint8), flat[rows]]
        return np.concatenate([columns[0] + 7] * coarse + columns, axis=1).tobytes()

    def make(name: str, layout: str) -> Path:
        if name == "cifar100" and layout == "python":
            for split, rows in (("train", slice(4)), ("test", slice(4, 6))):
                found = {b"data": flat[rows], b"fine_labels": labels[rows].tolist()}
                write("cifar-100-python", split, pickled_by_python2(found))
            names = {b"fine_label_names": [b"a", b"b", b"c", b"d"]}
            write("cifar-100-python", "meta", pickled_by_python2(names))
        elif name == "cifar100":
            for split, rows in (("train", slice(4)), ("test", slice(4, 6))):
                write("cifar-100-binary", f"{split}.bin", records(rows, True))
        elif layout == "python":
            for i in range(6):
                found_py3 = {"data": flat[i : i + 1], "labels": labels[i : i + 1].tolist()}
                file = "test_batch" if i == 5 else f"data_batch_{i + 1}"
                write("cifar-10-batches-py", file, pickle.dumps(found_py3, protocol=i % 6))
            write("cifar-10-batches-py", "batches.meta", pickle.dumps({"label_names": [*"abcd"]}))
        else:
            for i in range(6):
                file = "test_batch.bin" if i == 5 else f"data_batch_{i + 1}.bin"
                write("cifar-10-batches-bin", file, records(slice(i, i + 1), False))
        return tmp_path

    return make


def idx(array: Images) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def make_idx(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes 20 and 10 images as idx: (folder, packed) -> root."""

    def make(folder: str = "mnist", packed: bool = False, dotted: bool = False) -> Path:
        (tmp_path / folder).mkdir(parents=True)
        for split, count in (("train", 20), ("t10k", 10)):
            labels = (np.arange(count) % 10).astype(np.uint8)
            for name, array in (
                (f"{split}-images-idx3-ubyte", pixels(count, 28, 28)),
                (f"{split}-labels-idx1-ubyte", labels),
            ):
                file = tmp_path / folder / (name.replace("-idx", ".idx") if dotted else name)
                if packed:
                    file.with_name(file.name + ".gz").write_bytes(gzip.compress(idx(array)))
                else:
                    file.write_bytes(idx(array))
        return tmp_path

    return make


def write_image(path: Path, image: Images, **options: Any) -> None:
    """Write (h, w) or (h, w, 3) as an image file."""
    image_module = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image_module.fromarray(image).save(path, **options)


@pytest.fixture
def make_tiny(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a small Tiny ImageNet; second images are gray."""

    def make(classes: int = 3, train: int = 11) -> Path:
        home = tmp_path / "tiny-imagenet-200"
        wnids = [f"n{90 - label:08}" for label in range(classes)]
        for label, wnid in enumerate(wnids):
            for j in range(train):
                shade = np.full((64, 64) if j == 1 else (64, 64, 3), 20 * label + j, np.uint8)
                file = home / "train" / wnid / "images" / f"{wnid}_{j}.JPEG"
                write_image(file, shade, quality=95)
        lines = []
        for j in range(2 * classes):
            write_image(home / "val" / "images" / f"val_{j}.JPEG", pixels(1, 64, 64, 3)[0])
            lines.append(f"val_{j}.JPEG\t{wnids[j % classes]}\t0\t0\t63\t63\n")
        (home / "val" / "val_annotations.txt").write_text("".join(lines))
        (home / "wnids.txt").write_text("".join(f"{wnid}\n" for wnid in wnids))
        (home / "words.txt").write_text(f"{wnids[0]}\tcat, house cat\nn00000001\tthing\n")
        return tmp_path

    return make


@pytest.fixture
def make_core50(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a small CORe50; red is the session, green the object."""

    def make(objects: tuple[int, ...] = (1, 2, 10), frames: int = 2) -> Path:
        for session in range(1, 12):
            for one in objects:
                for frame in range(frames):
                    image = np.zeros((128, 128, 3), np.uint8)
                    image[..., 0], image[..., 1] = session, one
                    name = f"C_{session:02}_{one:02}_{frame:03}.png"
                    folder = tmp_path / "core50_128x128" / f"s{session}" / f"o{one}"
                    write_image(folder / name, image)
        return tmp_path

    return make


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes image folders: (splits, classes, count, size) -> root."""

    def make(
        splits: tuple[str, ...] = ("",),
        classes: tuple[str, ...] = ("ant", "bee"),
        count: int = 5,
        size: tuple[int, int] = (8, 8),
    ) -> Path:
        for part, split in enumerate(splits):
            for label, name in enumerate(classes):
                for j in range(count):
                    shade = 100 * part + 50 * label + j
                    image = np.full((size[1], size[0], 3), shade, np.uint8)
                    write_image(tmp_path / "pets" / split / name / f"{j}.png", image)
        return tmp_path

    return make


@pytest.fixture
def python2() -> Callable[[Any], bytes]:
    """Return a function that pickles as Python 2 did."""
    return pickled_by_python2


@pytest.fixture
def save_image() -> Callable[..., None]:
    """Return a function that writes image files."""
    return write_image
