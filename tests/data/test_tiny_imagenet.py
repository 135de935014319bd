from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sterad.data import DATASETS, TinyImageNet
from sterad.data.cache import cache_folder
from sterad.errors import SteradError

Made = Callable[..., Path]


def test_order_of_labels_and_images(make_tiny: Made) -> None:
    data = TinyImageNet(root=make_tiny()).load()
    assert data.train_images.shape == (33, 3, 64, 64)
    assert data.train_labels.tolist() == [0] * 11 + [1] * 11 + [2] * 11
    assert data.test_labels.tolist() == [0, 1, 2, 0, 1, 2]
    shades = data.train_images[:11].mean(axis=(1, 2, 3))
    np.testing.assert_allclose(shades, np.arange(11), atol=1)  # image 10 comes after image 9
    assert data.class_names == ("cat", "n00000089", "n00000088")
    assert data.flip


def test_copy_with_fewer_classes(make_tiny: Made) -> None:
    root = make_tiny()
    home = root / "tiny-imagenet-200"
    (home / "train" / "n00000089").rename(home / "gone")
    data = TinyImageNet(root=root).load()
    assert data.classes == 2
    assert data.test_labels.tolist() == [0, 1, 0, 1]
    assert data.class_names == ("cat", "n00000088")


def test_damaged_image_raises(make_tiny: Made) -> None:
    root = make_tiny()
    file = root / "tiny-imagenet-200" / "train" / "n00000089" / "images" / "n00000089_3.JPEG"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(SteradError, match=r"^1 of 33 images .*: '.*n00000089_3.JPEG' \("):
        TinyImageNet(root=root).load()
    assert [one.name for one in cache_folder(root).iterdir()] == ["lock"]


def test_missing_val_image_raises(make_tiny: Made) -> None:
    root = make_tiny()
    (root / "tiny-imagenet-200" / "val" / "images" / "val_2.JPEG").unlink()
    with pytest.raises(
        SteradError, match=r"^1 of 6 images cannot be decoded: '.*val_2.JPEG' \(.*No such"
    ):
        TinyImageNet(root=root).load()


def test_wrong_image_size_raises(save_image: Callable[..., None], make_tiny: Made) -> None:
    root = make_tiny()
    folder = root / "tiny-imagenet-200" / "train" / "n00000090" / "images"
    save_image(folder / "n00000090_7.JPEG", np.zeros((32, 64, 3), np.uint8))
    with pytest.raises(SteradError, match=r"n00000090_7\.JPEG' has 64x32 pixels instead of 64x64"):
        TinyImageNet(root=root).load()


def test_only_selected_images_are_decoded(make_tiny: Made) -> None:
    root = make_tiny()
    for file in (root / "tiny-imagenet-200" / "train" / "n00000088" / "images").iterdir():
        file.write_bytes(b"broken")
    data = TinyImageNet(root=root, classes=2, per_class=4, test_per_class=1, image_size=16).load()
    assert data.train_images.shape == (8, 3, 16, 16)
    assert data.test_labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "val/val_annotations.txt",
            "val_0.JPEG\n",
            "has the line 1, .* must be a file name and a class",
        ),
        ("val/val_annotations.txt", "", "lists no image"),
        ("wnids.txt", "n00000090\n", "has 1 of the classes"),
    ],
)
def test_invalid_annotations_raise(make_tiny: Made, file: str, content: str, message: str) -> None:
    root = make_tiny()
    (root / "tiny-imagenet-200" / file).write_text(content)
    with pytest.raises(SteradError, match=message):
        TinyImageNet(root=root).load()


def test_class_without_images_raises(make_tiny: Made) -> None:
    root = make_tiny()
    for file in (root / "tiny-imagenet-200" / "train" / "n00000089" / "images").iterdir():
        file.unlink()
    with pytest.raises(SteradError, match=r"there is no image in .*n00000089/images"):
        TinyImageNet(root=root).load()


def test_defaults(make_tiny: Made, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert TinyImageNet(root=nowhere).defaults().tasks == 100
    assert TinyImageNet(root=nowhere).defaults().scale == 1500
    defaults = DATASETS["seq-tinyimg"](root=nowhere, classes=20, per_class=50).defaults()  # type: ignore[call-arg]
    assert (defaults.tasks, defaults.scale) == (10, 15)
    here = TinyImageNet(root=make_tiny(classes=4, train=1)).defaults()
    assert (here.tasks, here.scale) == (2, 30)


def test_missing_pillow_raises(make_tiny: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_tiny(train=2)
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(SteradError, match=r"pip install 'sterad\[images\]'"):
        TinyImageNet(root=root).load()


def test_real_tiny_imagenet(real_data: Callable[[str], Path]) -> None:
    root = real_data("tiny-imagenet-200")
    contents = TinyImageNet(root=root).contents()
    assert set(np.bincount(contents.train.labels)) == {500}
    assert set(np.bincount(contents.test.labels)) == {50}
    data = TinyImageNet(root=root, classes=4, per_class=30, test_per_class=10).load()
    assert data.train_images.shape == (120, 3, 64, 64)
    # Gray photographs have three equal channels, color ones do not.
    gray = (np.ptp(data.train_images, axis=1) == 0).all(axis=(1, 2))
    assert gray.mean() < 0.2
