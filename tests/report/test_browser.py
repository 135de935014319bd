import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from sterad.report.page import render
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Opens what is folded, presses the button of the theme, and writes down what became visible.
PROBE = """<script>
document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
const ink = () => getComputedStyle(document.querySelector("figure svg text")).fill;
const before = ink();
document.getElementById("theme").click();
const drawn = [...document.querySelectorAll("figure svg")].filter((svg) => {
  const box = svg.getBoundingClientRect();
  return box.width > 200 && box.height > 80 && svg.querySelectorAll("path").length > 5;
});
const report = [drawn.length, before !== ink(), document.documentElement.scrollWidth, innerWidth];
parent.postMessage(report.join(" "), "*");
</script>"""
# A headless window has a least width, a frame in it has none.
FRAME = """<!doctype html><p id="probe"></p><script>
addEventListener("message", (event) => {
  document.getElementById("probe").textContent = event.data;
});
</script><iframe src="probed.html" width="WIDTH" height="900"></iframe>"""


@pytest.fixture(scope="session")
def browser() -> str:
    """Return a browser that starts, or skip."""
    for name in filter(None, map(shutil.which, NAMES)):
        if subprocess.run([name, "--version"], capture_output=True, check=False).returncode == 0:
            return name
    pytest.skip(f"no browser to open the page with: none of {', '.join(NAMES)} starts here")


@pytest.fixture
def page(tmp_path: Path, make_record: Build) -> Path:
    """Return a page of two methods on two streams."""
    methods, streams = ("agd-fd", "finetune"), ("clear", "blurry")
    records = [make_record(m, s, seed) for m in methods for s in streams for seed in (0, 1)]
    path = tmp_path / "report.html"
    path.write_text(render(records), encoding="utf-8")
    return path


def browse(browser: str, page: Path, *flags: str) -> str:
    """Open a page in the browser and return what it prints."""
    profile = f"--user-data-dir={page.parent / 'profile'}"
    done = subprocess.run(
        [browser, *FLAGS, profile, *flags, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("width", [1200, 390])
def test_every_figure_is_drawn_at_any_width(browser: str, page: Path, width: int) -> None:
    probed, frame = page.with_name("probed.html"), page.with_name("frame.html")
    text = page.read_text(encoding="utf-8").replace("</body>", f"{PROBE}</body>")
    probed.write_text(text, encoding="utf-8")
    frame.write_text(FRAME.replace("WIDTH", str(width)))
    document = browse(browser, frame, "--dump-dom", "--virtual-time-budget=5000")
    found = re.search(r'<p id="probe">([^<]+)</p>', document)
    assert found is not None
    drawn, switched, content, window = found[1].split()
    assert int(drawn) == 22
    assert switched == "true"  # the button changed the ink of the figures
    assert int(content) <= int(window) == width  # wide things scroll inside their boxes


def test_the_document_has_every_figure(browser: str, page: Path) -> None:
    document = browse(browser, page, "--dump-dom")
    assert document.count("<figure") == document.count("<svg") == 22


def test_the_screenshot_is_not_blank(browser: str, page: Path, tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    browse(browser, page, f"--screenshot={shot}", "--window-size=1000,3000")
    pixels = matplotlib.image.imread(shot)
    assert pixels.shape[:2] == (3000, 1000)
    bands = np.array_split((255 * pixels[..., :3]).astype(np.uint32), 4)
    colours = [np.unique(band @ np.array([65536, 256, 1], np.uint32)) for band in bands]
    assert all(len(found) > 50 for found in colours)
