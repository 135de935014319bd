import base64
import dataclasses
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

from sterad.report.comparison import compare_runs, render_comparison
from sterad.report.page import compose, render
from sterad.results.record import RunRecord
from sterad.results.stored_run import StoredRun

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
"""Two methods on two streams, two seeds each, as in test_page."""
DRAWN = """[...document.querySelectorAll("figure svg")].filter((svg) => {
  const box = svg.getBoundingClientRect();
  return box.width > 200 && box.height > 60 && svg.querySelectorAll("path").length > 5;
}).length"""
FIRST_TABLE = 'document.querySelector("#results table.sortable")'


class Tab:
    """A browser tab, controlled by the DevTools protocol over two pipes."""

    def __init__(self, to: BinaryIO, back: BinaryIO) -> None:
        self.to, self.back = to, back
        self.numbers, self.session = itertools.count(1), None
        self.requested: list[str] = []
        self.logged: list[str] = []
        """Console messages and violations of the security policy."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **values: Any) -> Any:
        number = next(self.numbers)
        request = {"id": number, "method": method, "params": values}
        if self.session:
            request["sessionId"] = self.session
        self.to.write(json.dumps(request).encode() + b"\0")
        self.to.flush()
        return self.wait(lambda message: message.get("id") == number)["result"]

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            message = json.loads(self._message())
            if message.get("method") == "Network.requestWillBeSent":
                self.requested.append(message["params"]["request"]["url"])
            if message.get("method") == "Log.entryAdded":
                self.logged.append(message["params"]["entry"]["text"])
            elif message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                self.logged.append(json.dumps(message["params"]))
            assert "error" not in message, message
            if wanted(message):
                return dict(message)

    def _message(self) -> bytes:
        parts = bytearray()
        while (byte := self.back.read(1)) != b"\0":
            assert byte, "the browser has exited"
            parts += byte
        return bytes(parts)

    def open(self, page: Path) -> None:
        self.requested.clear()
        self.logged.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.wait(lambda message: message.get("method") == "Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def click(self, element: str) -> None:
        """Click on the center of the element of a JavaScript expression."""
        box = f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}});"
        box += " const b = e.getBoundingClientRect();"
        x, y = self.evaluate(f"{box} return [b.x + b.width / 2, b.y + b.height / 2]; }})()")
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
        preference = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[preference])


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Start a browser, or skip; its pipes are the descriptors 3 and 4."""
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
    with os.fdopen(to, "wb") as requests, os.fdopen(back, "rb") as replies:
        try:
            yield Tab(requests, replies)
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
    """Return a tab with the page, with a light theme and empty local storage."""
    tab.resize(1200)
    tab.prefer("light")
    tab.open(page)
    tab.evaluate("localStorage.clear()")
    tab.open(page)
    return tab


def rows(tab: Tab, table: str = FIRST_TABLE) -> list[str]:
    found: list[str] = tab.evaluate(
        f"[...{table}.tBodies[0].rows].map((row) => row.cells[0].innerText)"
    )
    return found


def test_the_security_policy_runs_only_the_scripts_of_the_page(
    opened: Tab, page: Path, tmp_path: Path
) -> None:
    opened.click('document.getElementById("theme")')
    opened.click(f"{FIRST_TABLE}.tHead.rows[0].cells[1].querySelector('button')")
    opened.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert opened.logged == []
    added = '<script>window.added = 1</script><img src="x.png" onerror="window.added = 2">'
    changed = tmp_path / "changed.html"
    changed.write_text(page.read_text("utf-8").replace("<main>", f"<main>{added}"), "utf-8")
    opened.open(changed)
    assert opened.evaluate("window.added ?? null") is None
    assert "Content Security Policy" in " ".join(opened.logged)


def test_names_with_markup_are_texts(tab: Tab, tmp_path: Path, build_record: Build) -> None:
    names = ("<script>window.added = 1</script>", "=cmd", "a|b", "<img src=x onerror=alert(1)>")
    record = build_record(names[0], names=(*names, *"efghij"))
    path = tmp_path / "report.html"
    path.write_text(render(compose([record])), encoding="utf-8")
    tab.open(path)
    assert rows(tab) == [names[0]]
    assert tab.evaluate("window.added ?? null") is None
    assert tab.evaluate("document.images.length") == 0
    assert tab.logged == []


def test_a_click_on_a_head_sorts_the_column(opened: Tab) -> None:
    head = f"{FIRST_TABLE}.tHead.rows[0].cells"
    sorted_by = f"[...{head}].map((cell) => cell.getAttribute('aria-sort'))"
    assert rows(opened) == ["agd-fd", "finetune"]
    assert set(opened.evaluate(sorted_by)) == {"none"}
    opened.click(f"{head}[1].querySelector('button')")  # numbers: largest first
    assert rows(opened) == ["agd-fd", "finetune"]
    assert opened.evaluate(sorted_by)[1] == "descending"
    opened.click(f"{head}[1].querySelector('button')")
    assert rows(opened) == ["finetune", "agd-fd"]
    assert opened.evaluate(sorted_by)[:3] == ["none", "ascending", "none"]
    opened.click(f"{head}[0].querySelector('button')")  # names: alphabetically
    assert rows(opened) == ["agd-fd", "finetune"]
    assert opened.evaluate(sorted_by)[:2] == ["ascending", "none"]


def test_the_enter_key_sorts_the_column(opened: Tab) -> None:
    opened.evaluate(f"{FIRST_TABLE}.querySelectorAll('thead button')[0].focus()")
    opened.press("Tab", 9)
    for _ in range(2):
        opened.press("Enter", 13, "\r")
    assert rows(opened) == ["finetune", "agd-fd"]


def test_the_table_of_runs_is_sortable(opened: Tab) -> None:
    table = 'document.getElementById("all-runs")'
    column = f"[...{table}.tBodies[0].rows].map((row) => row.cells[3].dataset.value)"
    opened.click(f"{table}.tHead.rows[0].cells[3].querySelector('button')")
    values = [float(value) for value in opened.evaluate(column)]
    assert len(values) == 8
    assert values == sorted(values, reverse=True)
    absent = f"[...{table}.tBodies[0].rows].map((row) => row.cells[4].dataset.value)"
    for _ in range(2):  # blurry runs have no forgetting and come last
        opened.click(f"{table}.tHead.rows[0].cells[4].querySelector('button')")
        assert opened.evaluate(absent)[4:] == [""] * 4


def test_the_theme_follows_the_system_and_the_button(opened: Tab, page: Path) -> None:
    colors = "[getComputedStyle(document.body).backgroundColor,"
    colors += " getComputedStyle(document.querySelector('figure svg text')).fill]"
    light = opened.evaluate(colors)
    opened.prefer("dark")
    dark = opened.evaluate(colors)
    assert light[0] != dark[0]
    assert light[1] != dark[1]  # the text color of figures follows the page
    opened.click('document.getElementById("theme")')
    assert opened.evaluate(colors) == light
    opened.open(page)
    assert opened.evaluate(colors) == light  # local storage keeps the choice
    opened.click('document.getElementById("theme")')
    assert opened.evaluate(colors) == dark


@pytest.mark.parametrize("width", [2200, 1400, 1000, 390])
def test_the_navigation_is_never_cut_off(opened: Tab, page: Path, width: int) -> None:
    opened.resize(width)
    opened.open(page)
    menu, links = "document.getElementById('menu')", "[...document.querySelectorAll('nav a')]"
    assert opened.evaluate(f"{menu}.open") == (width > 768)
    if width < 768:
        opened.click(f"{menu}.querySelector('summary')")
    boxes = opened.evaluate(
        f"{links}.map((link) => {{ const b = link.getBoundingClientRect();"
        " return [b.left, b.right, b.width]; })"
    )
    assert len(boxes) == 12
    assert all(left >= 0 and right <= width and size > 0 for left, right, size in boxes)
    clipped = f"{links}.filter((link) => link.scrollWidth > link.clientWidth + 1).length"
    assert opened.evaluate(clipped) == 0
    opened.click(f"{links}.at(-1)")
    assert opened.evaluate("location.hash") == "#runs"
    assert opened.evaluate(f"{menu}.open") == (width > 768)


def test_a_wide_screen_is_used(opened: Tab) -> None:
    opened.resize(2200)
    tops = "[...document.querySelectorAll('#results .tables > div')].map((t) => t.offsetTop)"
    assert len(set(opened.evaluate(tops))) == 1  # tables side by side
    content = opened.evaluate("document.querySelector('main').getBoundingClientRect().width")
    assert content > 1800


def test_a_large_heat_map_is_an_image_in_the_page(
    tab: Tab, tmp_path: Path, build_record: Build
) -> None:
    record, classes = build_record(), 40
    stream = dataclasses.replace(
        record.stream,
        class_names=tuple(f"class {number}" for number in range(classes)),
        proportions=tuple((*row, *[0] * 30) for row in record.stream.proportions),
    )
    diagonal = tuple(map(tuple, (7 * np.eye(classes, dtype=int)).tolist()))
    record = dataclasses.replace(record, stream=stream, confusion=diagonal)
    path = tmp_path / "report.html"
    path.write_text(render(compose([record])), encoding="utf-8")
    tab.open(path)
    assert tab.evaluate("document.querySelectorAll('#confusion svg image').length") == 2
    assert tab.logged == []  # the security policy does not block it


@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_of_a_comparison(
    tab: Tab, tmp_path: Path, build_record: Build, width: int
) -> None:
    first, second = (
        StoredRun(Path(record.id), "finished", record.config, record)
        for record in (build_record(), build_record("finetune"))
    )
    path = tmp_path / "compare.html"
    path.write_text(render_comparison(compare_runs(first, second)), encoding="utf-8")
    tab.resize(width)
    tab.open(path)
    assert tab.evaluate(DRAWN) == 4
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    clipped = "[...document.querySelectorAll('main .scroll')].filter((box) =>"
    assert tab.evaluate(f"{clipped} box.scrollWidth > box.clientWidth + 1).length") == 0
    assert tab.logged == []


@pytest.mark.parametrize("width", [1200, 390])
def test_all_figures_are_visible_at_any_width(opened: Tab, width: int) -> None:
    opened.resize(width)
    opened.evaluate(
        "document.querySelectorAll('details').forEach((element) => { element.open = true; })"
    )
    assert opened.evaluate(DRAWN) == FIGURES
    content, window = opened.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert content <= window == width  # wide content scrolls inside its box


def test_only_the_file_is_requested(opened: Tab, page: Path) -> None:
    assert {url for url in opened.requested if not url.startswith("data:")} == {page.as_uri()}


def test_the_screenshot_is_not_blank(opened: Tab) -> None:
    opened.resize(1000, 3000)
    shot = base64.b64decode(opened.call("Page.captureScreenshot")["data"])
    pixels = matplotlib.image.imread(io.BytesIO(shot))
    assert pixels.shape[:2] == (3000, 1000)
    bands = np.array_split((255 * pixels[..., :3]).astype(np.uint32), 4)
    colors = [np.unique(band @ np.array([65536, 256, 1], np.uint32)) for band in bands]
    assert all(len(found) > 50 for found in colors)
