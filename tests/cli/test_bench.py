"""`sterad bench` with small settings."""

import json
from pathlib import Path

import pytest

from sterad.cli import main
from sterad.cli.bench import choose_methods


@pytest.mark.slow
def test_ratios_are_printed_and_all_results_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.json"
    options = ["er", "--image-size", "8", "--rounds", "1", "--images", "20"]
    options += ["--seconds", "0"]
    assert main(["bench", *options, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    for text in ("times the bare network", "Stages of agd-fd", "images/s", "images in memory"):
        assert text in out
    results = json.loads(file.read_text())
    (step,) = results["steps"]
    assert (step["method"], step["trained_images"]) == ("er", 74)
    assert step["ratio"]["median"] > 0
    assert {"views", "loss", "memory", "optimizer"} < set(results["stages"])


def test_invalid_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, message in (
        (["--rounds", "0"], "--rounds 0 is out of range: give an integer from 1 to 10,000"),
        (["--images", "0"], "--images 0 is out of range: give an integer from 1 to 100,000"),
        (["--seconds", "nan"], "--seconds nan is out of range: give a number in [0, 3600]"),
        (["--image-size", "7"], "--image-size 7 is out of range: give an integer from 8 to 512"),
        (["--precision", "int8"], "--precision 'int8' is unknown: choose float32, bfloat16 or "),
    ):
        assert main(["bench", *argv]) == 2
        assert capsys.readouterr().err.startswith(f"sterad: {message}")


def test_all_methods_that_train_a_network_are_timed_by_default() -> None:
    assert {"agd-fd", "er", "gdumb"} < set(choose_methods([]))
    assert not {"ncm", "slda", "ridge", "fecam", "randumb"} & set(choose_methods([]))


def test_methods_are_positional_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "err"]) == 2
    assert "unknown method 'err': did you mean 'er'" in capsys.readouterr().err
    assert main(["bench", "slda"]) == 2
    assert "slda trains no network to compare its steps with" in capsys.readouterr().err
    assert main(["bench", "--method", "er"]) == 2
    assert (
        "unknown option --method: give the method as the first argument" in capsys.readouterr().err
    )
    assert main(["bench", "--help"]) == 0
    assert "usage: sterad bench [METHOD ...] [options]" in capsys.readouterr().out
