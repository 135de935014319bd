"""`sterad bench` with small settings."""

import json
from pathlib import Path

import pytest

from sterad.bench.setup import BenchSetup
from sterad.bench.timing import Rounds
from sterad.cli import main
from sterad.cli.bench import BenchOptions, choose_execution, choose_methods, choose_rounds


@pytest.mark.slow
def test_ratios_are_printed_and_all_results_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.json"
    options = ["er", "--image-size", "8", "--rounds", "1", "--images", "20"]
    options += ["--seconds", "0", "--thorough"]
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


def test_a_thorough_bench_times_all_methods_that_train_a_network() -> None:
    names = set(choose_methods([], thorough=True))
    assert {"agd-fd", "er", "gdumb"} < names
    assert not {"ncm", "slda", "ridge", "fecam", "randumb"} & names


def test_the_default_is_quick() -> None:
    options = BenchOptions()
    assert choose_methods([], options.thorough) == ["er", "agd-fd"]
    assert choose_rounds(options) == Rounds(5, 2.0, limit=20.0)
    assert choose_rounds(BenchOptions(thorough=True)) == Rounds(12, 5.0)
    assert choose_rounds(BenchOptions(rounds=40, seconds=0.0)) == Rounds(40, 0.0)
    setup = BenchSetup()
    assert choose_execution(options, setup)[1].compile is False
    assert choose_execution(BenchOptions(compile=True), setup)[1].compile is True
    execution, resolved = choose_execution(BenchOptions(thorough=True), setup)
    assert resolved == setup.resolve(execution), "compiled where a long run compiles"


def test_steps_alone_are_timed_by_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.json"
    options = ["er", "--image-size", "8", "--rounds", "1", "--seconds", "0", "--json", str(file)]
    assert main(["bench", *options]) == 0
    out = capsys.readouterr().out
    assert "1 method, each takes 10 to 30 s" in out
    assert "er: " in out
    assert "Stages of agd-fd" not in out
    results = json.loads(file.read_text())
    assert set(results) == {"machine", "execution", "setup", "steps"}


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
