"""`sterad stream`: describe, save, replay and draw a stream."""

from pathlib import Path

import pytest

from sterad.cli import main

SMALL = ["--dataset", "synthetic", "--classes", "4", "--per-class", "12", "--tasks", "2"]


def test_a_saved_order_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = str(tmp_path / "order.npz")
    assert main(["stream", "blurry", *SMALL, "--seed", "3", "--save", order]) == 0
    description = capsys.readouterr().out.splitlines()[0]
    dataset = [argument for argument in SMALL if argument not in ("--tasks", "2")]
    assert main(["stream", "replay-file", *dataset, "--file", order]) == 0
    assert capsys.readouterr().out.splitlines()[0] == description


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_stream_is_drawn(kind: str, tmp_path: Path) -> None:
    target = tmp_path / f"stream.{kind}"
    assert main(["stream", "clear", *SMALL, "--draw", str(target)]) == 0
    assert target.stat().st_size > 1000


def test_an_order_is_saved_only_as_npz(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = tmp_path / "order.txt"
    assert main(["stream", "clear", *SMALL, "--save", str(order)]) == 2
    assert capsys.readouterr().err == (
        f"sterad: cannot save to {str(order)!r}: its name must end in .npz\n"
    )
    assert not list(tmp_path.iterdir())


def test_an_unknown_image_format_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stream", "clear", *SMALL, "--draw", str(tmp_path / "stream.doc")]) == 2
    assert "must end in .svg, .png or .pdf" in capsys.readouterr().err
