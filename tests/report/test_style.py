import itertools
import sys

import matplotlib
import numpy as np
import pytest

from sterad.errors import SteradError
from sterad.report.style import PALETTE, line_style, task_colors, use_theme

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color: str) -> np.ndarray:
    c = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    x, y, z = np.cbrt(XYZ @ np.clip(rgb, 0.001, 1) / XYZ.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("page", ["#ffffff", "#14171c"])
def test_colors_contrast_with_light_and_dark_pages(page: str) -> None:
    background = XYZ[1] @ linear(page)
    for color in PALETTE:
        darker, lighter = sorted((background, XYZ[1] @ linear(color)))
        assert (lighter + 0.05) / (darker + 0.05) >= 2.5, color


@pytest.mark.parametrize("vision", VISION)
def test_colors_are_distinct_for_the_color_blind(vision: str) -> None:
    lab_colors = {color: lab(np.array(VISION[vision]) @ linear(color)) for color in PALETTE}
    for first, second in itertools.combinations(PALETTE, 2):
        assert np.linalg.norm(lab_colors[first] - lab_colors[second]) > 12, (first, second)


def test_24_methods_have_distinct_styles() -> None:
    styles = [line_style(index) for index in range(24)]
    assert len({(style["color"], style["linestyle"]) for style in styles}) == 24
    assert len({style["marker"] for style in styles[:6]}) == 6


@pytest.mark.parametrize("count", [0, 1, 6, 7, 100])
def test_task_colors_are_distinct(count: int) -> None:
    assert len(set(task_colors(count))) == count


def test_the_theme_is_restored() -> None:
    before = dict(matplotlib.rcParams)
    with use_theme():
        assert matplotlib.rcParams["svg.fonttype"] == "none"
    assert dict(matplotlib.rcParams) == before


def test_missing_matplotlib_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SteradError, match=r"pip install 'sterad\[report\]'"), use_theme():
        pass
