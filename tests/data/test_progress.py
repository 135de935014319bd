import sys

import pytest

from sterad.data import progress as module
from sterad.data.progress import progress


def test_lines_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress("quick", 10, "images") as advance:
        advance(10)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(module, "LINE_INTERVAL_S", -1.0)
    with progress("slow", 10_000, "images") as advance:
        advance(4_000)
    with progress("endless", None, "bytes") as advance:
        advance(7)
    assert capsys.readouterr().err == "slow: 4,000 of 10,000 images\nendless: 7 bytes\n"


@pytest.mark.parametrize("unit", ["bytes", "images"])
def test_bar_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("drawn", 10, unit) as advance:
        advance(10)
    assert "drawn" in capsys.readouterr().err
