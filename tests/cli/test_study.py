"""What `sterad study` prints about missing, finished and unreadable runs."""

import json
from pathlib import Path

import pytest

from sterad.cli import main
from sterad.engine.execution import Execution
from sterad.experiments.run import run
from sterad.experiments.study import Study

STUDY = """
[fixed]
dataset = "synthetic"
classes = 2
per_class = 6
test-per-class = 2
tasks = 2
memory = 4
width = 2
method = "finetune"
[axes]
seed = [0, 1, 2]
"""


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    """Return the command line of a study of three runs, the first of which is done."""
    (tmp_path / "small.toml").write_text(STUDY)
    first = Study.from_toml(tmp_path / "small.toml").configs[0]
    run(first, tmp_path / "runs", Execution(threads=1))
    return ["study", str(tmp_path / "small.toml"), "--out", str(tmp_path / "runs")]


def test_a_dry_run_prints_finished_runs_and_the_cost_of_others(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert main([*argv, "--dry-run"]) == 0
    ids = [config.id for config in Study.from_toml(tmp_path / "small.toml").configs]
    done, first, second, total = capsys.readouterr().out.splitlines()
    assert done == f"done    {ids[0]}"
    for line, run_id in ((first, ids[1]), (second, ids[2])):
        assert line.startswith(f"missing {run_id}  about ")
        assert line.endswith(" (other seeds of it: 1 finished)")
    assert total.startswith("2 of 3 runs to do, about ")
    assert sorted(tmp_path.rglob("*")) == before


def test_unreadable_records_are_named_and_skipped(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = Study.from_toml(tmp_path / "small.toml")
    ids = [config.id for config in study.configs]
    record = (tmp_path / "runs" / ids[0] / "record.json").read_text()
    for run_id, text in ((ids[1], record[:99]), (ids[2], json.dumps({"schema": 2}))):
        (tmp_path / "runs" / run_id).mkdir()
        (tmp_path / "runs" / run_id / "record.json").write_text(text)
    assert main([*argv, "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert [line.split()[:2] for line in output.splitlines()[:3]] == [
        ["done", ids[0]],
        ["unread", ids[1]],
        ["unread", ids[2]],
    ]
    assert main(argv) == 1
    printed = capsys.readouterr()
    assert "(n=1)" in printed.out
    damaged, newer, count = printed.err.splitlines()[-3:]
    assert f"{ids[1]}/record.json is damaged" in damaged
    assert f"{ids[2]}/record.json has schema 2" in newer
    assert count == "sterad: left out: 2 of 3 records; their files are not changed"
    assert (tmp_path / "runs" / ids[1] / "record.json").read_text() == record[:99]


@pytest.mark.slow
def test_events_are_sent_to_a_logger(
    argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*argv, "--logger", "tensorbord"]) == 2
    assert "did you mean 'tensorboard'" in capsys.readouterr().err
    assert main([*argv, "--threads", "1", "--logger", "tensorboard"]) == 0
    assert len(list(tmp_path.glob("runs/*/tensorboard/events.*"))) == 2, "one run was done before"
    assert "finetune" in capsys.readouterr().out
