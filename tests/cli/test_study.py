"""What `sterad study` says of its runs: those to come, those done, and those that went wrong."""

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
def words(tmp_path: Path) -> list[str]:
    """Return the words of a study of three runs, the first of which is done."""
    (tmp_path / "small.toml").write_text(STUDY)
    first = Study.from_toml(tmp_path / "small.toml").configs[0]
    run(first, tmp_path / "runs", Execution(threads=1))
    return ["study", str(tmp_path / "small.toml"), "--out", str(tmp_path / "runs")]


def test_a_dry_run_says_what_is_done_and_what_the_rest_costs(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert main([*words, "--dry-run"]) == 0
    ids = [config.id for config in Study.from_toml(tmp_path / "small.toml").configs]
    done, first, second, total = capsys.readouterr().out.splitlines()
    assert done == f"done    {ids[0]}"
    for line, run_id in ((first, ids[1]), (second, ids[2])):
        assert line.startswith(f"missing {run_id}  about ")
        assert line.endswith(" (other seeds of it: 1 finished)")
    assert total.startswith("2 of 3 runs to do, about ")
    assert sorted(tmp_path.rglob("*")) == before


def test_records_that_cannot_be_read_are_named_skipped_and_counted(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = Study.from_toml(tmp_path / "small.toml")
    ids = [config.id for config in study.configs]
    whole = (tmp_path / "runs" / ids[0] / "record.json").read_text()
    for run_id, text in ((ids[1], whole[:99]), (ids[2], json.dumps({"schema": 2}))):
        (tmp_path / "runs" / run_id).mkdir()
        (tmp_path / "runs" / run_id / "record.json").write_text(text)
    assert main([*words, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[:2] for line in shown.splitlines()[:3]] == [
        ["done", ids[0]],
        ["unread", ids[1]],
        ["unread", ids[2]],
    ]
    assert main(words) == 1, "not all of the study is done"
    told = capsys.readouterr()
    assert "(n=1)" in told.out
    damaged, newer, count = told.err.splitlines()[-3:]
    assert f"{ids[1]}/record.json is damaged" in damaged
    assert f"{ids[2]}/record.json has schema 2" in newer
    assert count == "sterad: left out: 2 of 3 records; their files are not changed"
    assert (tmp_path / "runs" / ids[1] / "record.json").read_text() == whole[:99]
