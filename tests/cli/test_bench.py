"""`sterad bench`, small."""

import json
from pathlib import Path

import pytest

from sterad.cli import main


@pytest.mark.slow
def test_it_prints_ratios_and_writes_every_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.json"
    options = ["--method", "er", "--image-size", "8", "--rounds", "1", "--images", "20"]
    options += ["--seconds", "0"]
    assert main(["bench", *options, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    for words in ("times its limit", "Stages of agd-fd", "images a second", "images in memory"):
        assert words in out
    found = json.loads(file.read_text())
    (step,) = found["steps"]
    assert (step["method"], step["learning_images"]) == ("er", 74)
    assert step["ratio"]["median"] > 0
    assert {"views", "loss", "memory", "optimiser"} < set(found["stages"])


def test_nothing_to_time_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--rounds", "0"]) == 2
    assert "rounds 0 and images 500 must both be 1 or more" in capsys.readouterr().err
    assert main(["bench", "--seconds", "nan"]) == 2
    assert "seconds nan is outside 0 to 3600" in capsys.readouterr().err
