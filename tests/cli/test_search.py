"""`sterad search` in this process, and in processes that are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.cli import main
from sterad.experiments.tuned import read_tuned
from sterad.methods import METHODS
from sterad.results.run_directory import RunDirectory

SMALL = [
    *("--dataset", "synthetic", "--classes", "4", "--per-class", "20", "--tasks", "2"),
    *("--memory", "10", "--width", "2", "--threads", "1", "--views", "1"),
]
SEARCH = ["search", "er", *SMALL, "--space", "space.toml"]
SPACE = "[er]\nlr = [0.001, 0.1]\nmemory-batch = [4, 8]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path


@pytest.fixture
def error_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command which fails, and returns its error message."""

    def run(*argv: str) -> str:
        capsys.readouterr()
        assert main(argv) == 2
        return capsys.readouterr().err.splitlines()[-1]

    return run


@pytest.mark.slow
def test_the_best_values_are_printed_and_written_with_their_source(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*SEARCH, "--sampler", "grid", "--lr", "0.02", "--seeds", "7", "--workers", "2"]
    argv += ["--memory-format", "contiguous", "--logger", "tensorboard"]
    assert main(argv) == 0
    printed = capsys.readouterr()
    assert "given, so not searched: lr" in printed.err
    assert "tested on 10% of the training images, held out" in printed.err
    assert "[2/2] trial" in printed.err
    assert "s left" in printed.err
    file = find_result(folder)
    assert file.parent == Path("searches")
    assert f"written to {file}: use them with `sterad train er --tuned {file}`" in printed.out
    command = " ".join(["sterad", *argv, "--save-tuned FILE.toml"])
    assert f"to add them to other tuned values: {command}" in printed.out
    assert {path.name for path in folder.iterdir()} == {"space.toml", "searches"}
    found = read_tuned(str(file))["er"]
    assert found.values["lr"] == 0.02
    assert found.values["memory_batch"] in (4, 8)
    for part in ("sterad search er --dataset synthetic", "seeds 7", "best of 2 trials", "commit"):
        assert part in found.source
    for option in ("--threads", "--workers", "--memory-format"):
        assert option not in found.source
    records = list((folder / "searches").glob("*/record.json"))
    assert len(list((folder / "searches").glob("*/tensorboard/events.*"))) == len(records) == 2
    formats = {json.loads(r.read_text())["execution"]["memory_format"] for r in records}
    assert formats == {"contiguous"}
    assert {json.loads(r.read_text())["config"]["validation"] for r in records} == {0.1}
    assert {json.loads(r.read_text())["config"]["seed"] for r in records} == {7}

    before = {record: record.stat().st_mtime_ns for record in records}
    (folder / "other.toml").write_text('[scr]\nsource = "mine"\nlr = 0.5\n')
    assert main([*argv, "--save-tuned", "other.toml"]) == 0
    assert "saved to other.toml\n" in capsys.readouterr().out
    assert main([*argv, "--write", "other.toml"]) == 0, "an old name of the option"
    replaced = f"saved to other.toml, replacing: {found.source}\n"
    assert replaced in capsys.readouterr().out
    assert before == {record: record.stat().st_mtime_ns for record in before}
    saved = read_tuned("other.toml")
    assert saved["er"] == found
    assert (saved["scr"].source, saved["scr"].values) == ("mine", {"lr": 0.5})
    assert not (folder / "studies").exists()


def find_result(folder: Path) -> Path:
    """Return the file of tuned values of the only search, relative to the folder."""
    (file,) = folder.glob("searches/*.toml")
    assert file.stem.startswith("er-synthetic-clear-")
    return file.relative_to(folder)


def test_invalid_options_are_errors(folder: Path, error_of: Callable[..., str]) -> None:
    assert "did you mean 'lr'" in error_of(
        *SEARCH[:-1], str(write_space(folder, "[er]\nlrr = [1]"))
    )
    assert "give --space" in error_of("search", "ocm")
    grid = error_of("search", "er", "--sampler", "grid", "--trials", "10")
    assert "the grid has 48 points and 10 trials are allowed" in grid
    assert "unknown launcher" in error_of(*SEARCH, "--launcher", "lokal")
    assert "did you mean 'tensorboard'" in error_of(*SEARCH, "--logger", "tensorbord")
    text = "cannot save tuned values to 'best.txt': its name must end in .toml"
    assert text in error_of(*SEARCH, "--save-tuned", "best.txt")
    none = "--trials 0 is out of range: give an integer from 1 to 1,000,000"
    assert none in error_of(*SEARCH, "--trials", "0")
    assert "needs a METHOD: one of agd-fd, " in error_of("search")
    assert "unknown option --seed: a search has several, use --seeds" in error_of(
        *SEARCH, "--seed", "1"
    )
    no_cluster = error_of(*SEARCH, "--launcher", "ray", "--address", "127.0.0.1:1")
    assert "cannot connect to a Ray cluster at '127.0.0.1:1'" in no_cluster
    unreachable = error_of(*SEARCH, "--storage", "postgresql+psycopg://me:secret@127.0.0.1:1/x")
    assert "is not available" in unreachable
    assert "secret" not in unreachable
    assert not list(folder.glob("searches/*/record.json"))
    assert not list(folder.glob("searches/*.toml"))


def write_space(folder: Path, text: str) -> Path:
    (folder / "other-space.toml").write_text(text)
    return folder / "other-space.toml"


def test_an_error_names_the_extra_that_installs_optuna(
    error_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'sterad[search]'" in error_of(*SEARCH)


def test_optuna_is_imported_only_by_a_search() -> None:
    code = (
        "import sys, sterad, sterad.cli; sterad.cli.main(['--help']); import sterad.cli.search; "
        "sys.exit('optuna' in sys.modules or 'sqlalchemy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def start_search(*options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "sterad.cli", *SEARCH, *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.slow
def test_a_killed_search_continues(folder: Path) -> None:
    options = ("--sampler", "grid", "--seeds", "7", "8", "--workers", "1", "--lr", "0.1")
    process = start_search(*options)
    while process.poll() is None and not list(folder.glob("searches/*/record.json")):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    done = {f: f.stat().st_mtime_ns for f in folder.glob("searches/*/record.json")}
    assert 1 <= len(done) < 4
    process = start_search(*options)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "2 trials" in output
    assert "best of 2 trials" in read_tuned(str(find_result(folder)))["er"].source
    assert len(list(folder.glob("searches/*/record.json"))) == 4
    assert done == {f: f.stat().st_mtime_ns for f in done}, "finished runs are not repeated"


@pytest.mark.slow
def test_a_killed_search_at_equal_pixels_continues(folder: Path) -> None:
    (folder / "space.toml").write_text(
        '[er]\nequal-pixels = { field = "memory-batch", low = 2, high = 8 }\n'
        "lr = [0.001, 0.1]\nmemory-iterations = [1, 2]\n"
    )
    options = ("--sampler", "grid", "--seeds", "7", "--workers", "1", "--pixels", "1024")
    process = start_search(*options)
    while process.poll() is None and not list(folder.glob("searches/*/record.json")):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    done = {f: f.stat().st_mtime_ns for f in folder.glob("searches/*/record.json")}
    process = start_search(*options)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "each with 1.02 k pixels per batch, by its memory_batch" in errors
    records = [
        RunDirectory(f.parent.parent, f.parent.name).read_record()
        for f in folder.glob("searches/*/record.json")
    ]
    costs = {record.config["method"]["memory_batch"] for record in records if record is not None}
    assert (len(records), costs) == (2, {6}), errors
    assert "memory_batch" in output
    assert done == {f: f.stat().st_mtime_ns for f in done}, "finished runs are not repeated"


@pytest.mark.slow
def test_the_local_launcher_stops_a_run_when_the_callback_returns_true(folder: Path) -> None:
    from sterad.engine.execution import Execution
    from sterad.experiments.config import RunConfig
    from sterad.experiments.launchers import Job, Local

    values = {"dataset": "synthetic", "classes": 4, "tasks": 2, "memory": 0, "width": 2}
    configs = [RunConfig.of(method="finetune", seed=s, per_class=100, **values) for s in (0, 1)]
    jobs = [Job(config, folder, Execution(threads=1)) for config in configs]
    outcomes = Local(2).launch(jobs, lambda run, event: run == jobs[0].id and event["step"] > 0)
    by_id = {outcome.job.id: outcome for outcome in outcomes}
    assert "SIGTERM" in (by_id[jobs[0].id].error or "")
    assert not RunDirectory(folder, jobs[0].id).record.exists()
    assert by_id[jobs[1].id].record is not None


@pytest.mark.parametrize("method", list(METHODS))
def test_help_of_every_method(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", method, "--help"]) == 0
    output = capsys.readouterr().out
    assert "--tested-on validation|test\n" in output
    assert f"\nMethod: {method}\n" in output
    assert "--seeds INT ..." in output
    assert "--seed INT" not in output
