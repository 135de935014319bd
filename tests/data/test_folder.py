import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sterad.data import Folder
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
    with pytest.raises(SteradError, match=r"has 12x8 pixels and is not square: give image_size"):
        Folder(root=root, folder="pets").load()
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


def test_sixteen_bit_image_raises(save_image: Callable[..., None], make_folder: Made) -> None:
    root = make_folder(("train", "test"))
    save_image(root / "pets" / "train" / "ant" / "1.png", np.full((8, 8), 40_000, np.uint16))
    with pytest.raises(SteradError, match=r"more than 8 bits per channel"):
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
