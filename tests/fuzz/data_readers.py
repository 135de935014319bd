"""Readers of data files: caches, CIFAR, idx, npz, images, order files and archives."""

import gzip
import io
import os
import pickle
import shutil
import struct
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sterad.data import Dataset
from sterad.data.archive import unpack
from sterad.data.cifar import Cifar100
from sterad.data.file_dataset import Contents
from sterad.data.mnist import Mnist
from sterad.data.user_files import Folder, Npz
from sterad.streams.order_file import read_order, save_order
from sterad.streams.tasks import Clear
from tests.fuzz.harness import Reader
from tests.fuzz.mutations import (
    inside_gzip,
    mutate_bytes,
    mutate_idx,
    mutate_json,
    mutate_npy,
    mutate_npz,
    mutate_pickle,
    mutate_tar,
    mutate_zip,
)

IMAGES = np.random.default_rng(0).integers(0, 256, (8, 4, 4), dtype=np.uint8)
LABELS = np.arange(8) % 4
NAMES = np.array([*"abcd"])


def read_contents(contents: Contents) -> Any:
    """Return all labels and pixels."""
    splits = (contents.train, contents.test)
    arrays = [a for s in splits for a in (s.labels, s.fetch(np.arange(len(s.labels))))]
    return contents.class_names, [(a.dtype.str, a.shape, a.tobytes()) for a in arrays]


def write_npz(folder: Path) -> Path:
    np.savez(
        folder / "mine.npz",
        train_images=IMAGES,
        train_labels=LABELS,
        test_images=IMAGES,
        test_labels=LABELS,
        class_names=NAMES,
    )
    return folder / "mine.npz"


def read_npz(file: Path) -> Any:
    return read_contents(Npz(root=file.parent, npz_file=file.name).contents())


def write_cache(name: str) -> Any:
    def write(folder: Path) -> Path:
        write_npz(folder)
        os.environ["XDG_CACHE_HOME"] = str(folder / "user-cache")
        Npz(root=folder, npz_file="mine.npz").load()
        (manifest,) = folder.glob("user-cache/sterad/*/*/manifest.json")
        entry = manifest.parent
        shutil.copytree(entry, folder / "intact")
        return entry / name

    return write


def read_cache(file: Path) -> Any:
    """Return what a dataset loads; a damaged entry must be built again."""
    for other in (file.parents[4] / "intact").iterdir():
        if other.name != file.name:
            shutil.copy2(other, file.parent / other.name)
    data = Npz(root=file.parents[4], npz_file="mine.npz").load()
    arrays = (data.train_images, data.train_labels, data.test_images, data.test_labels)
    return data.class_names, data.digest, [(a.dtype.str, a.shape, a.tobytes()) for a in arrays]


def write_cifar(folder: Path) -> Path:
    home = folder / "cifar-100-python"
    home.mkdir()
    pixels = np.random.default_rng(1).integers(0, 256, (2, 3072), dtype=np.uint8)
    for name in ("train", "test"):
        (home / name).write_bytes(pickle.dumps({"data": pixels, "fine_labels": [0, 1]}, 2))
    (home / "meta").write_bytes(pickle.dumps({"fine_label_names": ["a", "b"]}, 2))
    return home / "train"


def read_cifar(file: Path) -> Any:
    return read_contents(Cifar100(root=file.parents[1]).contents())


def write_cifar_meta(folder: Path) -> Path:
    return write_cifar(folder).with_name("meta")


def write_idx(suffix: str) -> Any:
    def write(folder: Path) -> Path:
        (folder / "mnist").mkdir()
        pack = gzip.compress if suffix else bytes
        for split in ("train", "t10k"):
            for name, array in (("images-idx3", IMAGES), ("labels-idx1", LABELS.astype(np.uint8))):
                header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
                file = folder / "mnist" / f"{split}-{name}-ubyte{suffix}"
                file.write_bytes(pack(header + array.tobytes()))
        return folder / "mnist" / f"train-images-idx3-ubyte{suffix}"

    return write


def read_mnist(file: Path) -> Any:
    return read_contents(Mnist(root=file.parents[1]).contents())


def write_image(suffix: str) -> Any:
    def write(folder: Path) -> Path:
        import PIL.Image

        for label in "ab":
            (folder / "mine" / label).mkdir(parents=True)
            for number in range(2):
                image = PIL.Image.fromarray(np.stack([IMAGES[number]] * 3, axis=2))
                image.save(folder / "mine" / label / f"{number}{suffix}")
        return folder / "mine" / "a" / f"0{suffix}"

    return write


def read_image(file: Path) -> Any:
    return read_contents(Folder(root=file.parents[2], folder="mine").contents())


@cache
def small_dataset() -> Dataset:
    return Dataset.from_arrays(IMAGES, LABELS, IMAGES, LABELS, [*"abcd"])


def write_order(folder: Path) -> Path:
    return save_order(Clear(tasks=2).open(small_dataset(), 0), folder / "order.npz")


def read_order_file(file: Path) -> Any:
    stream = read_order(file, small_dataset())
    scored = [(one.name, one.classes, one.indices.tolist()) for one in stream.evaluations()]
    return stream.digest, stream.order.tolist(), stream.tasks, stream.ends, scored


def write_zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "packed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a", "b"):
            archive.writestr(f"data/{name}.txt", name * 100)
    return folder / "packed.zip"


def write_tar(folder: Path) -> Path:
    with tarfile.open(folder / "packed.tar.gz", "w:gz") as archive:
        for name in ("a", "b"):
            info = tarfile.TarInfo(f"data/{name}.txt")
            info.size = 100
            archive.addfile(info, io.BytesIO(name.encode() * 100))
    return folder / "packed.tar.gz"


def read_archive(file: Path) -> Any:
    """Return the unpacked files; nothing may be written outside of their folder."""
    into = file.parent / "into"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    try:
        unpack(file, into, "data")
    finally:
        written = [path for path in file.parent.rglob("*") if not path.is_dir()]
        outside = {path for path in written if not path.is_relative_to(into / "data")} - {file}
        assert not outside, outside
        assert not any(path.is_symlink() for path in written)
        assert not Path("/tmp/sterad-fuzz").exists()
    return {str(path.relative_to(into)): path.read_bytes() for path in written if path != file}


IDX = (mutate_bytes, mutate_idx)
NPY = (mutate_bytes, mutate_npy)
DATA_READERS = (
    Reader("cache-manifest", write_cache("manifest.json"), read_cache, (mutate_bytes, mutate_json)),
    # Opening an entry does not read all images; `sterad data check` compares their hash.
    Reader("cache-images", write_cache("train_images.npy"), read_cache, (), NPY),
    Reader("cache-labels", write_cache("train_labels.npy"), read_cache, NPY),
    Reader("cifar-pickle", write_cifar, read_cifar, (), (mutate_bytes, mutate_pickle)),
    Reader("cifar-names", write_cifar_meta, read_cifar, (), (mutate_bytes, mutate_pickle)),
    Reader("idx", write_idx(""), read_mnist, (), IDX),
    Reader("idx-gzip", write_idx(".gz"), read_mnist, (), (mutate_bytes, *map(inside_gzip, IDX))),
    Reader("npz", write_npz, read_npz, (), (mutate_bytes, mutate_zip, mutate_npz)),
    Reader("png", write_image(".png"), read_image, (), (mutate_bytes,)),
    Reader("jpeg", write_image(".jpg"), read_image, (), (mutate_bytes,)),
    Reader("order", write_order, read_order_file, (mutate_bytes,), (mutate_zip, mutate_npz)),
    Reader("archive-zip", write_zip, read_archive, (), (mutate_bytes, mutate_zip)),
    Reader("archive-tar", write_tar, read_archive, (), (mutate_bytes, mutate_tar)),
)
