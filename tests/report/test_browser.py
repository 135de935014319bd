import base64
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import matplotlib.image
import numpy as np
import pytest

from sterad.report.page import compose, render
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
    "--remote-debugging-pipe",
)
FIGURES = 38
"""Two methods on two streams, two seeds each: see the tests of the page."""
DRAWN = """[...document.querySelectorAll("figure svg")].filter((svg) => {
  const box = svg.getBoundingClientRect();
  return box.width > 200 && box.height > 60 && svg.querySelectorAll("path").length > 5;
}).length"""
FIRST_TABLE = 'document.querySelector("#results table.sortable")'


class Tab:
    """A tab of a running browser, spoken to by the DevTools protocol over two pipes."""

    def __init__(self, to: BinaryIO, back: BinaryIO) -> None:
        self.to, self.back = to, back
        self.numbers, self.session = itertools.count(1), None
        self.requested: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **values: Any) -> Any:
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": values}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        return self.wait(lambda heard: heard.get("id") == number)["result"]

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            heard = json.loads(self._message())
            if heard.get("method") == "Network.requestWillBeSent":
                self.requested.append(heard["params"]["request"]["url"])
            assert "error" not in heard, heard
            if wanted(heard):
                return dict(heard)

    def _message(self) -> bytes:
        parts = bytearray()
        while (byte := self.back.read(1)) != b"\0":
            assert byte, "the browser has gone"
            parts += byte
        return bytes(parts)

    def open(self, page: Path) -> None:
        self.requested.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.wait(lambda heard: heard.get("method") == "Page.loadEventFired")

    def ask(self, expression: str) -> Any:
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def click(self, element: str) -> None:
        """Press and release the mouse in the middle of what an expression finds."""
        box = f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}});"
        box += " const b = e.getBoundingClientRect();"
        x, y = self.ask(f"{box} return [b.x + b.width / 2, b.y + b.height / 2]; }})()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, code: int, text: str = "") -> None:
        common = {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def prefer(self, scheme: str) -> None:
        wish = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[wish])


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Start a browser, or skip; its ends of the pipes are descriptors 3 and 4."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None or subprocess.run([browser, "--version"], capture_output=True).returncode:
        pytest.skip(f"no browser to open the page with: none of {', '.join(NAMES)} starts here")
    (read, to), (back, write) = os.pipe(), os.pipe()
    profile = f"--user-data-dir={tmp_path_factory.mktemp('profile')}"
    pid = os.posix_spawn(
        browser,
        [browser, *FLAGS, profile],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, read, 3),
            (os.POSIX_SPAWN_DUP2, write, 4),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
    )
    os.close(read)
    os.close(write)
    with os.fdopen(to, "wb") as ours, os.fdopen(back, "rb") as theirs:
        try:
            yield Tab(ours, theirs)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, build_record: Build) -> Path:
    """Return a page of two methods on two streams."""
    methods, streams = ("agd-fd", "finetune"), ("clear", "blurry")
    records = [build_record(m, s, seed) for m in methods for s in streams for seed in (0, 1)]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(compose(records)), encoding="utf-8")
    return path


@pytest.fixture
def opened(tab: Tab, page: Path) -> Tab:
    """Return a tab with the page in it, light and wide, as on the first visit."""
    tab.resize(1200)
    tab.prefer("light")
    tab.open(page)
    tab.ask("localStorage.clear()")
    tab.open(page)
    return tab


def rows(tab: Tab, table: str = FIRST_TABLE) -> list[str]:
    found: list[str] = tab.ask(f"[...{table}.tBodies[0].rows].map((row) => row.cells[0].innerText)")
    return found


def test_a_click_on_a_column_sorts_by_it(opened: Tab) -> None:
    head = f"{FIRST_TABLE}.tHead.rows[0].cells"
    sorted_by = f"[...{head}].map((cell) => cell.getAttribute('aria-sort'))"
    assert rows(opened) == ["agd-fd", "finetune"]
    assert set(opened.ask(sorted_by)) == {"none"}
    opened.click(f"{head}[1].querySelector('button')")  # numbers begin with the largest
    assert rows(opened) == ["agd-fd", "finetune"]
    assert opened.ask(sorted_by)[1] == "descending"
    opened.click(f"{head}[1].querySelector('button')")
    assert rows(opened) == ["finetune", "agd-fd"]
    assert opened.ask(sorted_by)[:3] == ["none", "ascending", "none"]
    opened.click(f"{head}[0].querySelector('button')")  # names begin with a
    assert rows(opened) == ["agd-fd", "finetune"]
    assert opened.ask(sorted_by)[:2] == ["ascending", "none"]


def test_the_keyboard_sorts_too(opened: Tab) -> None:
    opened.ask(f"{FIRST_TABLE}.querySelectorAll('thead button')[0].focus()")
    opened.press("Tab", 9)
    for _ in range(2):
        opened.press("Enter", 13, "\r")
    assert rows(opened) == ["finetune", "agd-fd"]


def test_all_runs_sort_by_their_numbers(opened: Tab) -> None:
    table = 'document.getElementById("all-runs")'
    column = f"[...{table}.tBodies[0].rows].map((row) => row.cells[3].dataset.value)"
    opened.click(f"{table}.tHead.rows[0].cells[3].querySelector('button')")
    values = [float(value) for value in opened.ask(column)]
    assert len(values) == 8
    assert values == sorted(values, reverse=True)
    absent = f"[...{table}.tBodies[0].rows].map((row) => row.cells[4].dataset.value)"
    for _ in range(2):  # blurry runs have no forgetting: they come last either way
        opened.click(f"{table}.tHead.rows[0].cells[4].querySelector('button')")
        assert opened.ask(absent)[4:] == [""] * 4


def test_the_theme_follows_the_system_and_then_the_button(opened: Tab, page: Path) -> None:
    look = "[getComputedStyle(document.body).backgroundColor,"
    look += " getComputedStyle(document.querySelector('figure svg text')).fill]"
    light = opened.ask(look)
    opened.prefer("dark")
    dark = opened.ask(look)
    assert light[0] != dark[0]
    assert light[1] != dark[1]  # figures change their ink with the page
    opened.click('document.getElementById("theme")')
    assert opened.ask(look) == light
    opened.open(page)
    assert opened.ask(look) == light  # the choice is kept
    opened.click('document.getElementById("theme")')
    assert opened.ask(look) == dark


@pytest.mark.parametrize("width", [1200, 390])
def test_every_figure_is_drawn_at_any_width(opened: Tab, width: int) -> None:
    opened.resize(width)
    opened.ask("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert opened.ask(DRAWN) == FIGURES
    content, window = opened.ask("[document.documentElement.scrollWidth, innerWidth]")
    assert content <= window == width  # wide things scroll inside their boxes


def test_nothing_but_the_file_is_asked_for(opened: Tab, page: Path) -> None:
    assert {url for url in opened.requested if not url.startswith("data:")} == {page.as_uri()}


def test_the_screenshot_is_not_blank(opened: Tab) -> None:
    opened.resize(1000, 3000)
    shot = base64.b64decode(opened.call("Page.captureScreenshot")["data"])
    pixels = matplotlib.image.imread(io.BytesIO(shot))
    assert pixels.shape[:2] == (3000, 1000)
    bands = np.array_split((255 * pixels[..., :3]).astype(np.uint32), 4)
    colors = [np.unique(band @ np.array([65536, 256, 1], np.uint32)) for band in bands]
    assert all(len(found) > 50 for found in colors)
