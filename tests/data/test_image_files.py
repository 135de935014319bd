"""Image files of every kind that Pillow writes: sizes, alpha, depth, color spaces, orientation."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageOps

from sterad.data import Folder
from sterad.data.image_files import ImageFiles, read_pixels
from sterad.errors import SteradError

Made = Callable[..., Path]
Pixels = npt.NDArray[np.uint8]


def saved(path: Path, image: Any, **options: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pillow, about what it writes
        image.save(path, **options)
    return str(path)


def read(path: str, channels: int = 3, background: Any = "white") -> Pixels:
    pixels: Pixels = np.ascontiguousarray(read_pixels(Image, path, channels, background))
    return pixels


def random_pixels(*shape: int) -> Pixels:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize(("background", "shade"), [("white", 255), ("black", 0)])
def test_transparent_pixels_show_the_background(
    tmp_path: Path, background: str, shade: int
) -> None:
    pixels = random_pixels(4, 6, 4)
    pixels[..., 3] = [255, 255, 0, 0, 51, 51]
    found = read(saved(tmp_path / "a.png", Image.fromarray(pixels)), background=background)
    colors = pixels[..., :3].transpose(2, 0, 1)
    np.testing.assert_array_equal(found[..., :2], colors[..., :2])
    assert (found[..., 2:4] == shade).all()
    blended = colors[..., 4:] * 0.2 + shade * 0.8
    assert np.abs(found[..., 4:] - blended).max() <= 1


def test_palettes_and_gray_images_with_transparency(tmp_path: Path) -> None:
    gray = np.array([[[0, 0], [90, 255]]], np.uint8)
    found = read(saved(tmp_path / "la.png", Image.fromarray(gray, "LA")), channels=1)
    assert found.tolist() == [[[255, 90]]]
    palette = Image.fromarray(np.array([[0, 1]], np.uint8), "P")
    palette.putpalette([10, 20, 30, 40, 50, 60])
    assert read(saved(tmp_path / "p.png", palette))[:, 0].T.tolist() == [[10, 20, 30], [40, 50, 60]]
    for name, transparency in (("index.png", 0), ("bytes.png", b"\x00\xff")):
        found = read(saved(tmp_path / name, palette, transparency=transparency))
        assert found[:, 0].T.tolist() == [[255, 255, 255], [40, 50, 60]]
    color = Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8))
    found = read(saved(tmp_path / "rgb.png", color, transparency=(1, 2, 3)))
    assert found[:, 0].T.tolist() == [[255, 255, 255], [4, 5, 6]]


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
@pytest.mark.parametrize("channels", [1, 3])
def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path: Path, name: str, channels: int) -> None:
    values = np.array([[0, 128, 129, 257, 40_000, 65_535]], np.uint16)
    found = read(saved(tmp_path / name, Image.fromarray(values)), channels)
    assert found.shape == (channels, 1, 6)
    assert found[-1, 0].tolist() == [0, 0, 1, 1, 156, 255]


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_thirty_two_bits_are_refused(tmp_path: Path, make_folder: Made, dtype: Any) -> None:
    root = make_folder(("train", "test"))
    saved(root / "pets" / "train" / "ant" / "9.tif", Image.fromarray(np.ones((8, 8), dtype)))
    message = r"ant/9\.tif' \(it has 32 bits per channel, mode [IF]; save it with 8 or 16 bits\)"
    with pytest.raises(SteradError, match=message):
        Folder(root=root, folder="pets").load()


def test_cmyk_and_bilevel_images(tmp_path: Path) -> None:
    ink = np.zeros((4, 4, 4), np.uint8)
    ink[..., 0] = 255  # cyan
    found = read(saved(tmp_path / "a.tif", Image.fromarray(ink, "CMYK")))
    assert found[:, 0, 0].tolist() == [0, 255, 255]
    photo = read(saved(tmp_path / "a.jpg", Image.fromarray(ink, "CMYK"), quality=100))
    assert np.abs(photo[:, 0, 0].astype(int) - [0, 255, 255]).max() <= 3
    bits = Image.fromarray(np.array([[0, 255]], np.uint8)).convert("1")
    assert read(saved(tmp_path / "b.png", bits)).tolist() == [[[0, 255]]] * 3


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("channels", [1, 3])
def test_the_orientation_of_a_camera_is_applied(
    tmp_path: Path, orientation: int, channels: int
) -> None:
    image, exif = Image.fromarray(random_pixels(5, 3, 3)), Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path / "a.png", image, exif=exif)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))
    found = read(path, channels)
    assert found.shape[1:] == expected.shape[:2]
    if channels == 3:
        np.testing.assert_array_equal(found, expected.transpose(2, 0, 1))


def test_damaged_exif_data_do_not_matter(tmp_path: Path) -> None:
    image = Image.fromarray(random_pixels(4, 4, 3))
    path = saved(tmp_path / "a.png", image, exif=b"Exif\0\0no such thing")
    np.testing.assert_array_equal(read(path), np.asarray(image).transpose(2, 0, 1))


WIDE = np.array([[10, 20, 30, 40]] * 2, np.uint8)


@pytest.mark.parametrize(
    ("fit", "size", "expected"),
    [
        ("crop", (2, 2), [[20, 30]] * 2),
        ("crop", (1, 2), [[15, 35]]),
        ("stretch", (2, 2), [[15, 35]] * 2),
        ("stretch", (1, 4), [[10, 20, 30, 40]]),
        ("pad", (2, 2), [[15, 35], [255, 255]]),
        ("pad", (4, 4), [[255] * 4, *WIDE.tolist(), [255] * 4]),
        ("pad", (2, 8), [[255, 255, 10, 20, 30, 40, 255, 255]] * 2),
    ],
)
def test_fit_of_a_wide_image(
    tmp_path: Path, fit: Any, size: tuple[int, int], expected: list[list[int]]
) -> None:
    path = saved(tmp_path / "a.png", Image.fromarray(WIDE))
    turned = saved(tmp_path / "b.png", Image.fromarray(WIDE.T.copy()))
    files = ImageFiles([path], size, size, 1, fit)
    assert files.fetch(np.array([0]))[0, 0].tolist() == expected
    tall = ImageFiles([turned], size[::-1], size[::-1], 1, fit)
    assert tall.fetch(np.array([0]))[0, 0].T.tolist() == expected


def test_folders_of_mixed_sizes_need_a_size(make_folder: Made) -> None:
    root = make_folder(size=(8, 8))
    for name in ("ant", "bee"):
        saved(root / "pets" / name / "x.png", Image.fromarray(random_pixels(20, 12, 3)))
    with pytest.raises(
        SteradError, match=r"x\.png' has 12x20 pixels instead of 8x8.*: give image_si"
    ):
        Folder(root=root, folder="pets").load()
    fits: tuple[Any, ...] = ("crop", "stretch", "pad")
    loaded = [
        Folder(root=root, folder="pets", image_size=9, image_width=6, fit=fit).load()
        for fit in fits
    ]
    assert {data.input_shape for data in loaded} == {(3, 9, 6)}
    assert len({data.digest for data in loaded}) == 3
    black = Folder(
        root=root, folder="pets", image_size=9, image_width=6, fit="pad", background="black"
    )
    assert black.load().digest not in {data.digest for data in loaded}


def test_a_folder_is_given_as_text_or_as_a_path(make_folder: Made) -> None:
    root = make_folder()
    assert Folder(root=root, folder=Path("pets")) == Folder(root=root, folder="pets")
    assert Folder(folder=root / "pets").load().classes == 2
    with pytest.raises(SteradError, match="folder 3 is of type int: give a path"):
        Folder(folder=3)  # type: ignore[arg-type]
