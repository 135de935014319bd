import hashlib
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sterad.data.download import download
from sterad.errors import SteradError

CONTENT = random.Random(0).randbytes(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sterad.data.download.STALL_TIMEOUT_S", 0.3)
    monkeypatch.setattr("sterad.data.download.MAX_TRIES", 2)
    monkeypatch.setattr("sterad.data.download.FIRST_PAUSE_S", 0.0)


class Server(ThreadingHTTPServer):
    """Serves CONTENT with the faults in `plan`, one per request."""

    daemon_threads = True
    plan: list[str]
    seen: list[str | None]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        fault = self.server.plan.pop(0) if self.server.plan else ""
        wanted = self.headers.get("Range")
        self.server.seen.append(wanted)
        if fault in ("404", "503"):
            self.send_error(int(fault))
            return
        if fault.startswith("to "):
            self.send_response(302)
            self.send_header("Location", fault.removeprefix("to "))
            self.end_headers()
            return
        body = bytes(len(CONTENT)) if fault == "corrupt" else CONTENT
        body += b"more" if fault == "longer" else b""
        body = body[:-7] if fault == "shorter" else body
        start = int(wanted[6:-1]) if wanted and fault != "ignores range" else 0
        if start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            begin = start - 1 if fault == "wrong range" else start
            self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        if fault != "no length":
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        end = start + 100_000 if fault in ("ends early", "stalls") else len(body)
        self.wfile.write(body[start:end])
        if fault == "stalls":
            self.wfile.flush()
            time.sleep(1)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server(("127.0.0.1", 0), Handler)
    running.plan, running.seen = [], []
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def fetch(server: Server, tmp_path: Path) -> Callable[..., Path]:
    def once(*plan: str, size: int = len(CONTENT), md5: str | None = MD5) -> Path:
        server.plan, server.seen = list(plan), []
        target = tmp_path / "deep" / "file.gz"
        url = f"http://127.0.0.1:{server.server_address[1]}/file.gz"
        download(url, target, size, md5)
        return target

    return once


def names(tmp_path: Path) -> list[str]:
    return sorted(one.name for one in (tmp_path / "deep").iterdir())


def test_download_of_a_file(fetch: Callable[..., Path], tmp_path: Path) -> None:
    assert fetch().read_bytes() == CONTENT
    assert names(tmp_path) == ["file.gz"]


@pytest.mark.parametrize("fault", ["ends early", "stalls"])
def test_interrupted_transfer_is_continued(
    fetch: Callable[..., Path], server: Server, tmp_path: Path, fault: str
) -> None:
    assert fetch(fault, fault).read_bytes() == CONTENT
    assert server.seen == [None, "bytes=100000-", "bytes=200000-"]
    assert names(tmp_path) == ["file.gz"]


def test_next_download_continues_the_partial_file(
    fetch: Callable[..., Path], server: Server, tmp_path: Path
) -> None:
    with pytest.raises(SteradError, match=r"the server returned 503.*the received part is kept"):
        fetch("ends early", "503", "503", "503")
    assert names(tmp_path) == ["file.gz.part"]
    assert fetch().read_bytes() == CONTENT
    assert server.seen == ["bytes=100000-"]


def test_server_without_range_support(fetch: Callable[..., Path], tmp_path: Path) -> None:
    assert fetch("ends early", "ignores range").read_bytes() == CONTENT
    assert names(tmp_path) == ["file.gz"]


def test_wrong_range_raises(fetch: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(
        SteradError, match="sends byte 99999 in response to a request for byte 100000"
    ):
        fetch("ends early", "wrong range")
    assert fetch().read_bytes() == CONTENT


def test_partial_file_that_is_too_long_is_replaced(
    fetch: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file.gz.part").write_bytes(bytes(400_000))
    assert fetch().read_bytes() == CONTENT


def test_complete_partial_file_needs_no_server(
    fetch: Callable[..., Path], server: Server, tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file.gz.part").write_bytes(CONTENT)
    assert fetch().read_bytes() == CONTENT
    assert server.seen == []


def test_partial_file_of_another_file_raises(fetch: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file.gz.part").write_bytes(bytes(1000))
    with pytest.raises(SteradError, match="the checksum is"):
        fetch()
    assert names(tmp_path) == []
    assert fetch().read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("corrupt", f"the checksum is .* and must be {MD5}"),
        ("longer", "the file has 300,004 bytes and must have 300,000"),
        ("shorter", "the file has 299,993 bytes and must have 300,000"),
        ("404", "the server returned 404"),
        ("to file:///etc/passwd", "'file:///etc/passwd' is not allowed"),
        ("to ftp://127.0.0.1/x", "which is not http or https"),
    ],
)
def test_wrong_file_raises_and_a_second_download_succeeds(
    fetch: Callable[..., Path], tmp_path: Path, fault: str, message: str
) -> None:
    with pytest.raises(SteradError, match=message) as caught:
        fetch(fault)
    assert "put file.gz (300,000 bytes, md5" in str(caught.value)
    assert names(tmp_path) == []
    assert fetch().read_bytes() == CONTENT


def test_http_redirects_are_followed(fetch: Callable[..., Path], server: Server) -> None:
    there = f"to http://127.0.0.1:{server.server_address[1]}/other"
    assert fetch(there).read_bytes() == CONTENT
    with pytest.raises(SteradError, match="redirect"):
        fetch(*[there] * 30, md5="0" * 32)


def test_length_is_checked_without_a_checksum(fetch: Callable[..., Path], tmp_path: Path) -> None:
    assert fetch("ends early", size=len(CONTENT) - 99, md5=None).read_bytes() == CONTENT
    assert fetch("no length").read_bytes() == CONTENT


def test_size_is_checked_without_a_checksum(fetch: Callable[..., Path], tmp_path: Path) -> None:
    message = r"has 300,000 bytes and must have about 400,000\. Run the same"
    with pytest.raises(SteradError, match=message):
        fetch(size=400_000, md5=None)
    assert not list(tmp_path.rglob("*.gz*"))


def test_a_file_that_is_too_long_is_not_received_without_a_checksum(
    fetch: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(SteradError, match=r"has 300,000 bytes and must have at most 101,000"):
        fetch(md5=None, size=100_000)
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and file.stat().st_size]


def test_unreachable_server_raises(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    target = tmp_path / "x.zip"
    with pytest.raises(SteradError, match="cannot be reached") as caught:
        download(f"http://127.0.0.1:{port}/x.zip", target, 9, "0" * 32)
    assert re.search(
        rf"put x.zip \(9 bytes, md5 0+\) at '{target}' and run it again", str(caught.value)
    )
    assert list(tmp_path.iterdir()) == []


def test_unwritable_folder_raises(tmp_path: Path, server: Server) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SteradError, match="cannot write"):
        download("http://127.0.0.1:1/x", tmp_path / "file" / "x", 9, None)
