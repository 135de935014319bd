import os
import re
import shutil
import socket
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sterad.data import Folder, TinyImageNet
from sterad.data.image_files import ImageFiles
from sterad.errors import SteradError

Made = Callable[..., Path]


def test_train_and_test_folders(make_folder: Made) -> None:
    data = Folder(root=make_folder(("train", "val")), folder="pets").load()
    assert data.train_images.shape == (10, 3, 8, 8)
    assert data.train_images[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4, 50, 51, 52, 53, 54]
    assert data.test_labels.tolist() == [0] * 5 + [1] * 5
    assert data.class_names == ("ant", "bee")
    assert not data.flip
    assert Folder(folder="pets", flip=True).flip


def test_random_split_depends_on_the_seed(make_folder: Made) -> None:
    root = make_folder(count=20)

    def test_pixels(**changes: Any) -> list[int]:
        data = Folder(root=root, folder="pets", **changes).load()
        values = [images[:, 0, 0, 0].tolist() for images in (data.train_images, data.test_images)]
        assert sorted(values[0] + values[1]) == [*range(20), *range(50, 70)]
        assert np.bincount(data.test_labels).tolist() == [len(values[1]) // 2] * 2
        return list(values[1])

    assert len(test_pixels()) == 8
    assert test_pixels() == test_pixels()
    assert test_pixels() != test_pixels(split_seed=1)
    assert len(test_pixels(test_share=0.5)) == 20
    assert len(test_pixels(test_share=0.001)) == 2


def test_conversion_to_gray_and_to_a_size(
    save_image: Callable[..., None], make_folder: Made
) -> None:
    root = make_folder(size=(12, 8))
    assert Folder(root=root, folder="pets").load().input_shape == (3, 8, 12)
    save_image(root / "pets" / "ant" / "9.png", np.full((30, 20), 9, np.uint8))
    data = Folder(root=root, folder="pets", image_size=6, channels=1).load()
    assert data.input_shape == (1, 6, 6)
    with pytest.raises(SteradError, match=r"image_size 33 is more than 4 times the 8"):
        Folder(root=root, folder="pets", image_size=33).load()


def test_images_are_cropped_to_the_center_square(
    save_image: Callable[..., None], make_folder: Made
) -> None:
    root = make_folder()
    stripes = np.zeros((8, 16, 3), np.uint8)
    stripes[:, 4:12] = 200
    for name in ("ant", "bee"):
        shutil.rmtree(root / "pets" / name)
        for j in range(2):
            save_image(root / "pets" / name / f"{j}.png", stripes + j)
    assert Folder(root=root, folder="pets", image_size=4).load().train_images.min() >= 200


def test_images_of_different_sizes_raise(
    save_image: Callable[..., None], make_folder: Made
) -> None:
    root = make_folder(("train", "test"))
    save_image(root / "pets" / "train" / "bee" / "3.png", np.zeros((9, 9, 3), np.uint8))
    with pytest.raises(
        SteradError,
        match=r"the image .*train/bee/3\.png' has 9x9 pixels instead of 8x8.*give image_size",
    ):
        Folder(root=root, folder="pets").load()


def test_single_class_raises(make_folder: Made) -> None:
    with pytest.raises(SteradError, match=r"has 1 class \('ant'\): give two or more"):
        Folder(root=make_folder(classes=("ant",)), folder="pets").load()


def test_damaged_image_raises(make_folder: Made) -> None:
    root = make_folder(("train", "test"))
    (root / "pets" / "train" / "bee" / "2.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    remedy = r"\. Replace or remove them$"
    one = rf"^1 of 20 images cannot be decoded: '[^']*train/bee/2\.png' \(.*\){remedy}"
    with pytest.raises(SteradError, match=one):
        Folder(root=root, folder="pets").load()
    # The first image determines the size; damaged images of both splits are listed.
    (root / "pets" / "train" / "ant" / "0.png").write_bytes(b"")
    (root / "pets" / "test" / "bee" / "1.png").write_bytes(b"no image")
    files = r" \(.*\); ".join(rf"'[^']*{one}\.png'" for one in ("ant/0", "bee/2", "test/bee/1"))
    with pytest.raises(
        SteradError, match=rf"^3 of 20 images cannot be decoded: {files} .*{remedy}"
    ):
        Folder(root=root, folder="pets").load()


def test_huge_image_raises_before_decoding(
    make_folder: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sterad.data.image_files.MAX_PIXELS", 50)
    with pytest.raises(SteradError, match=r"8x8 pixels, more than 50"):
        Folder(root=make_folder(), folder="pets").load()


def test_invalid_folders_raise(
    save_image: Callable[..., None], make_folder: Made, tmp_path: Path
) -> None:
    root = make_folder(("train", "test"))
    save_image(root / "pets" / "test" / "cat" / "0.png", np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(SteradError, match=r"has a class 'cat' that"):
        Folder(root=root, folder="pets").load()
    shutil.rmtree(root / "pets" / "test" / "cat")
    (root / "pets" / "train" / "empty").mkdir()
    with pytest.raises(SteradError, match=r"no image in .*empty"):
        Folder(root=root, folder="pets").load()
    with pytest.raises(SteradError, match=r"the dataset folder needs --folder: give its path"):
        Folder(root=root).load()
    missing = r"there is no '.*/dogs' or 'dogs': correct --folder or --root"
    with pytest.raises(SteradError, match=missing):
        Folder(root=root, folder="dogs").load()
    with pytest.raises(
        SteradError, match=r"ant/0\.png' is not a folder: give a folder with one sub-"
    ):
        Folder(root=root, folder="pets/train/ant/0.png").load()
    for share in (0.0, 1.0):
        message = rf"^test_share {share} is out of range: give a number in \(0, 1\)$"
        with pytest.raises(SteradError, match=message):
            Folder(test_share=share)
    with pytest.raises(
        SteradError, match=r"^split_seed -1 is out of range: give an integer from 0"
    ):
        Folder(split_seed=-1)
    with pytest.raises(SteradError, match=r"^channels 2 is unknown: choose 1 or 3$"):
        Folder(channels=2)  # type: ignore[arg-type]


def test_class_with_one_image_raises(make_folder: Made) -> None:
    with pytest.raises(SteradError, match=r"'ant' has one image"):
        Folder(root=make_folder(count=1), folder="pets").load()


def test_defaults_from_counts(make_folder: Made) -> None:
    defaults = Folder(root=make_folder(("train", "test"), count=10), folder="pets").defaults()
    assert (defaults.tasks, defaults.scale) == (2, 1.5)


def test_counts_are_read_from_the_cache(make_folder: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    described = Folder(root=make_folder(count=10), folder="pets", per_class=6)
    before = described.defaults()
    described.load()
    monkeypatch.setattr(Folder, "contents", lambda _: pytest.fail("listed again"))
    assert described.defaults() == before


def test_new_image_invalidates_the_cache(
    save_image: Callable[..., None], make_folder: Made
) -> None:
    root = make_folder(("train", "test"))
    described = Folder(root=root, folder="pets")
    assert len(described.load().train_labels) == 10
    save_image(root / "pets" / "train" / "bee" / "77.png", np.zeros((8, 8, 3), np.uint8))
    assert len(described.load().train_labels) == 11


def test_links_that_form_loops_are_followed_once(make_folder: Made) -> None:
    root = make_folder(("train", "test"))
    (root / "pets" / "train" / "ant" / "loop").symlink_to(root / "pets" / "train" / "ant")
    (root / "pets" / "train" / "ant" / "deep").mkdir()
    (root / "pets" / "train" / "ant" / "deep" / "up").symlink_to("..")
    assert len(Folder(root=root, folder="pets").load().train_labels) == 10
    (root / "pets" / "train" / "cat").symlink_to(root / "pets" / "train" / "ant")
    with pytest.raises(SteradError, match=r"there is no image in .*cat'"):
        Folder(root=root, folder="pets", image_size=8).load()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.path.relpath(path))


def broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [fifo, unix_socket, broken_link, link_to_itself, device])
def test_special_files_raise_and_never_block(
    make_folder: Made,
    make: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    error_within_limits: Callable[..., str],
) -> None:
    root = make_folder(("train", "test"))
    monkeypatch.chdir(root)
    make(root / "pets" / "train" / "ant" / "x.png")
    message = error_within_limits(Folder(root=root, folder="pets").load)
    assert "ant/x.png' is not a regular file" in message


def test_fifo_in_annotations_raises(
    make_tiny: Made, error_within_limits: Callable[..., str]
) -> None:
    file = make_tiny() / "tiny-imagenet-200" / "val" / "images" / "val_1.JPEG"
    file.unlink()
    os.mkfifo(file)
    message = error_within_limits(TinyImageNet(root=file.parents[3]).load)
    assert "val_1.JPEG' (it is not a regular file)" in message


def test_names_that_are_not_utf8(make_folder: Made, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_folder(("train", "test"))
    for split in ("train", "test"):
        ant = root / "pets" / split / "ant"
        (ant / "0.png").rename(ant / os.fsdecode(b"\xff.png"))
        ant.rename(ant.with_name("a"))
    described = Folder(root=root, folder="pets")
    assert len(described.load().train_labels) == 10
    assert len(described.load().train_labels) == 10
    (root / "pets").rename(root / os.fsdecode(b"pets\xfe"))
    described = Folder(root=root, folder=os.fsdecode(b"pets\xfe"))
    assert len(described.load().train_labels) == 10
    for split in ("train", "test"):
        ant = root / os.fsdecode(b"pets\xfe") / split / "a"
        ant.rename(ant.with_name(os.fsdecode(b"a\xff")))
    with pytest.raises(SteradError, match=r"the class name 'a\\udcff' is not valid") as e:
        described.load()
    str(e.value).encode()


def hard_link(train: Path, test: Path) -> None:
    os.link(train, test)


def symbolic_link(train: Path, test: Path) -> None:
    test.symlink_to(train)


def copy(train: Path, test: Path) -> None:
    shutil.copy(train, test)


@pytest.mark.parametrize("share", [hard_link, symbolic_link, copy])
def test_image_in_both_splits_raises(
    make_folder: Made, share: Callable[[Path, Path], None]
) -> None:
    home = make_folder(("train", "test")) / "pets"
    share(home / "train" / "ant" / "3.png", home / "test" / "bee" / "9.png")
    pair = r"1 test images are also training images: '.*train/ant/3.png' and '.*test/bee/9.png'\."
    with pytest.raises(SteradError, match=pair):
        Folder(root=home.parent, folder="pets").load()


def test_image_in_both_parts_of_a_random_split_raises(make_folder: Made) -> None:
    home = make_folder(count=2) / "pets"
    shutil.copy(home / "ant" / "0.png", home / "ant" / "1.png")
    with pytest.raises(SteradError, match=r"ant/[01]\.png' and '.*ant/[01]\.png'\. Remove one of"):
        Folder(root=home.parent, folder="pets").load()


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("size", [None, 8])
def test_image_bomb_raises_before_memory_is_allocated(
    make_folder: Made, error_within_limits: Callable[..., str], size: int | None
) -> None:
    root = make_folder(("train", "test"))

    def chunk(name: bytes, content: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + checksum

    for side in (13_000, 30_000):
        header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
        content += chunk(b"IDAT", zlib.compress(bytes(side * side // 100))) + chunk(b"IEND", b"")
        (root / "pets" / "train" / "ant" / "0.png").write_bytes(content)
        message = error_within_limits(Folder(root=root, folder="pets", image_size=size).load)
        assert re.search(r"ant/0\.png' \(.*(pixels, more than|exceeds limit)", message)


def test_large_images_are_decoded_in_small_chunks(
    make_folder: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    fetch = ImageFiles.fetch
    monkeypatch.setattr("sterad.data.file_dataset.MAX_CHUNK_BYTES", 3 * 8 * 8 * 3)

    def counted(files: ImageFiles, positions: Any) -> Any:
        counts.append(len(positions))
        return fetch(files, positions)

    monkeypatch.setattr(ImageFiles, "fetch", counted)
    Folder(root=make_folder(("train", "test")), folder="pets").load()
    assert max(counts) == 3


def test_formats_are_limited(make_folder: Made) -> None:
    root = make_folder(("train", "test"))
    # Pillow would start Ghostscript for this file, whatever its name.
    text = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n"
    (root / "pets" / "train" / "ant" / "1.png").write_bytes(text)
    with pytest.raises(SteradError, match=r"ant/1\.png' \(cannot identify image file"):
        Folder(root=root, folder="pets").load()


def test_overwritten_image_invalidates_the_cache(
    save_image: Callable[..., None], make_folder: Made
) -> None:
    root = make_folder(("train", "test"))
    described, file = Folder(root=root, folder="pets"), root / "pets" / "train" / "ant" / "0.png"
    assert described.load().train_images[0, 0, 0, 0] == 0
    before = file.stat()
    save_image(file, np.full((8, 8, 3), 9, np.uint8))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert described.load().train_images[0, 0, 0, 0] == 9
