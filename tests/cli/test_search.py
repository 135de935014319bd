"""`sterad search` as a user types it, with processes of its own where that is the point."""

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
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*words: str) -> str:
        capsys.readouterr()
        assert main(words) == 2
        return capsys.readouterr().err.splitlines()[-1]

    return run


def test_the_best_is_printed_and_written_with_its_source(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*SEARCH, "--sampler", "grid", "--lr", "0.02", "--seeds", "7", "--workers", "2"]
    words += ["--memory-format", "contiguous"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "given, so not searched: lr" in said.err
    assert "tested on 10% of the training images, held out" in said.err
    assert "[2/2] trial" in said.err
    assert "s left" in said.err
    file = found_by(folder)
    assert file.parent == Path("searches")
    told = f"written to {file}: `sterad train er --tuned {file}` takes these values"
    assert told in said.out
    again = " ".join(["sterad", *words, "--save-tuned FILE.toml"])
    assert f"to keep them among other tuned values: {again}" in said.out
    assert {one.name for one in folder.iterdir()} == {"space.toml", "searches"}
    found = read_tuned(str(file))["er"]
    assert found.values["lr"] == 0.02
    assert found.values["memory_batch"] in (4, 8)
    for part in ("sterad search er --dataset synthetic", "seeds 7", "best of 2 trials", "commit"):
        assert part in found.source
    for place in ("--threads", "--workers", "--memory-format"):
        assert place not in found.source
    records = list((folder / "searches").glob("*/record.json"))
    formats = {json.loads(r.read_text())["execution"]["memory_format"] for r in records}
    assert formats == {"contiguous"}
    assert {json.loads(r.read_text())["config"]["validation"] for r in records} == {0.1}
    assert {json.loads(r.read_text())["config"]["seed"] for r in records} == {7}

    before = {record: record.stat().st_mtime_ns for record in records}
    (folder / "other.toml").write_text('[scr]\nsource = "mine"\nlr = 0.5\n')
    assert main([*words, "--save-tuned", "other.toml"]) == 0
    assert "saved to other.toml\n" in capsys.readouterr().out
    assert main([*words, "--write", "other.toml"]) == 0, "another name of it"
    replaced = f"saved to other.toml, in place of: {found.source}\n"
    assert replaced in capsys.readouterr().out
    assert before == {record: record.stat().st_mtime_ns for record in before}
    saved = read_tuned("other.toml")
    assert saved["er"] == found
    assert (saved["scr"].source, saved["scr"].values) == ("mine", {"lr": 0.5})
    assert not (folder / "studies").exists(), "nothing is written among the package's own"


def found_by(folder: Path) -> Path:
    """Return the file of the one search that was done, as it is named from the folder."""
    (file,) = folder.glob("searches/*.toml")
    assert file.stem.startswith("er-synthetic-clear-")
    return file.relative_to(folder)


def test_refusals(folder: Path, refused: Callable[..., str]) -> None:
    assert "did you mean 'lr'" in refused(*SEARCH[:-1], str(written(folder, "[er]\nlrr = [1]")))
    assert "give --space" in refused("search", "ocm")
    grid = refused("search", "er", "--sampler", "grid", "--trials", "10")
    assert "the grid has 48 points and 10 trials are allowed" in grid
    assert "unknown launcher" in refused(*SEARCH, "--launcher", "lokal")
    text = "cannot save tuned values to 'best.txt': its name must end in .toml"
    assert text in refused(*SEARCH, "--save-tuned", "best.txt")
    none = "--trials 0 is out of range: give an integer from 1 to 1,000,000"
    assert none in refused(*SEARCH, "--trials", "0")
    assert "needs a METHOD: one of agd-fd, " in refused("search")
    assert "unknown option --seed: a search has several, use --seeds" in refused(
        *SEARCH, "--seed", "1"
    )
    nobody = refused(*SEARCH, "--launcher", "ray", "--address", "127.0.0.1:1")
    assert "no Ray cluster answers at '127.0.0.1:1'" in nobody, "its fields are options"
    unreachable = refused(*SEARCH, "--storage", "postgresql+psycopg://me:secret@127.0.0.1:1/x")
    assert "does not answer" in unreachable
    assert "secret" not in unreachable
    assert not list(folder.glob("searches/*/record.json"))
    assert not list(folder.glob("searches/*.toml"))


def written(folder: Path, text: str) -> Path:
    (folder / "other-space.toml").write_text(text)
    return folder / "other-space.toml"


def test_a_search_without_optuna_says_what_to_install(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'sterad[search]'" in refused(*SEARCH)


def test_nothing_else_waits_for_optuna() -> None:
    code = (
        "import sys, sterad, sterad.cli; sterad.cli.main(['--help']); import sterad.cli.search; "
        "sys.exit('optuna' in sys.modules or 'sqlalchemy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def started(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "sterad.cli", *SEARCH, *words]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.slow
def test_killed_in_the_midst_it_continues(folder: Path) -> None:
    words = ("--sampler", "grid", "--seeds", "7", "8", "--workers", "1", "--lr", "0.1")
    process = started(*words)
    while process.poll() is None and not list(folder.glob("searches/*/record.json")):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    done = {f: f.stat().st_mtime_ns for f in folder.glob("searches/*/record.json")}
    assert 1 <= len(done) < 4
    process = started(*words)
    told, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "2 trials" in told
    assert "best of 2 trials" in read_tuned(str(found_by(folder)))["er"].source
    assert len(list(folder.glob("searches/*/record.json"))) == 4
    assert done == {f: f.stat().st_mtime_ns for f in done}, "what was finished is not repeated"


@pytest.mark.slow
def test_a_run_is_stopped_by_its_launcher(folder: Path) -> None:
    """The local launcher ends the one run that the watch has enough of."""
    from sterad.engine.execution import Execution
    from sterad.experiments.config import RunConfig
    from sterad.experiments.launchers import Job, Local

    values = {"dataset": "synthetic", "classes": 4, "tasks": 2, "memory": 0, "width": 2}
    configs = [RunConfig.of(method="finetune", seed=s, per_class=100, **values) for s in (0, 1)]
    jobs = [Job(config, folder, Execution(threads=1)) for config in configs]
    outcomes = Local(2).launch(jobs, lambda run, event: run == jobs[0].id and event["step"] > 0)
    found = {outcome.job.id: outcome for outcome in outcomes}
    assert "SIGTERM" in (found[jobs[0].id].error or "")
    assert not RunDirectory(folder, jobs[0].id).record.exists()
    assert found[jobs[1].id].record is not None


@pytest.mark.parametrize("method", list(METHODS))
def test_no_field_of_a_method_stands_in_the_way(
    method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", method, "--help"]) == 0
    said = capsys.readouterr().out
    assert "--tested-on validation|test\n" in said
    assert f"\nMethod: {method}\n" in said
    assert "--seeds INT ..." in said
    assert "--seed INT" not in said, "a search has several"
