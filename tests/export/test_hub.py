"""push_to_hub, with the real huggingface_hub, to a server on this machine that stores commits."""

import base64
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sterad import load_exported, push_to_hub
from sterad.errors import SteradError
from tests.export.scaffold import Backbone, check_equal, fitted, thousand_images

pytest.importorskip("huggingface_hub", reason="push_to_hub uses it where it is installed")
TOKEN = "local"


class Hub(ThreadingHTTPServer):
    """A hub that keeps the files of commits in memory."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.created: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.message = ""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """The requests that creating a repository and a commit of small files take."""

    server: Hub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "Invalid credentials"})
        if self.path == "/api/repos/create":
            self.server.created.append(json.loads(body))
            return self.answer(200, {"url": f"{self.server.address}/me/digits"})
        if self.path == "/api/validate-yaml":
            return self.answer(200, {"errors": [], "warnings": []})
        if self.path == "/api/models/me/digits/preupload/main":
            mode = {"uploadMode": "regular", "shouldIgnore": False}
            files = [{"path": one["path"], **mode} for one in json.loads(body)["files"]]
            return self.answer(200, {"files": files})
        if self.path == "/api/models/me/digits/commit/main":
            self.commit([json.loads(line) for line in body.splitlines()])
            address = f"{self.server.address}/me/digits/commit/abc"
            return self.answer(200, {"commitUrl": address, "commitOid": "abc", "success": True})
        return self.answer(404, {"error": f"no {self.path}"})

    def commit(self, entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            value = entry["value"]
            if entry["key"] == "header":
                self.server.message = value["summary"]
            else:
                assert (entry["key"], value["encoding"]) == ("file", "base64")
                self.server.files[value["path"]] = base64.b64decode(value["content"])

    def answer(self, status: int, values: dict[str, Any]) -> None:
        content = json.dumps(values).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_a_pushed_classifier_predicts_after_a_download(hub: Hub, tmp_path: Path) -> None:
    options: Any = {"endpoint": hub.address, "token": TOKEN, "message": "ten digits"}
    address = push_to_hub(fitted("head"), "me/digits", formats=["pt2"], private=True, **options)
    assert address == f"{hub.address}/me/digits/commit/abc"
    (created,) = hub.created
    assert (created["organization"], created["name"]) == ("me", "digits")
    assert "private" in (created.get("visibility"), *created)
    assert hub.message == "ten digits"
    names = ["README.md", "model.pt2", "model.pt2.json"]
    assert sorted(hub.files) == [*names, "model.safetensors", "model.safetensors.json"]
    for name, content in hub.files.items():
        (tmp_path / name).write_bytes(content)
    readme = (tmp_path / "README.md").read_text()
    assert "library_name: sterad" in readme
    assert "10 classes: `a`, `b`" in readme
    check_equal(load_exported(tmp_path / "model.safetensors"), fitted("head"), thousand_images())


def test_an_own_encoder_is_named_in_the_readme(hub: Hub) -> None:
    push_to_hub(fitted("head-own-module"), "me/digits", endpoint=hub.address, token=TOKEN)
    readme = hub.files["README.md"].decode()
    assert f"Encoder: {Backbone.__name__}" in readme
    assert "encoder=your_module" in readme


def test_refusals(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def push(repo: str = "me/digits", **options: Any) -> None:
        push_to_hub(fitted("head"), repo, **{"endpoint": hub.address, "token": TOKEN} | options)

    with pytest.raises(SteradError, match=r"upload to 'me/digits' failed .*401.* check the name"):
        push(token="wrong")
    with pytest.raises(SteradError, match=r"upload to 'a/b/c' failed .*Repo id must be"):
        push("a/b/c")
    with pytest.raises(SteradError, match="unknown format 'zip': give one of onnx, pt2, safet"):
        push(formats=["zip"])
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(SteradError, match=r"is not installed .*pip install huggingface_hub"):
        push()
    assert hub.files == {}
