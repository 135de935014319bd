"""`sterad show` and `sterad runs` on small real runs."""

import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sterad.cli import main
from sterad.cli.repeat import repeat_command, repeat_note
from sterad.cli.terminal import make_console, make_table, print_table
from sterad.cli.train import parse_train_request
from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig
from sterad.experiments.defaults import changed_fields
from sterad.experiments.run import run
from sterad.methods import METHODS
from sterad.results.run_directory import RunDirectory
from sterad.results.stored_run import StoredRun, read_run

Capture = pytest.CaptureFixture[str]
SMALL: dict[str, Any] = {
    "dataset": "synthetic",
    "classes": 4,
    "per_class": 8,
    "test_per_class": 4,
    "tasks": 2,
}
VALUES = {**SMALL, "memory": 8, "width": 2, "anytime": 4, "encoder": "mlp"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two finished runs."""
    out = tmp_path_factory.mktemp("runs")
    for method, lr in (("er", 0.125), ("finetune", 0.5)):
        run(out=out, execution=Execution(threads=1), method=method, lr=lr, **VALUES)
    return out


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    """Return a copy with an unfinished and a damaged run as well."""
    copy = tmp_path / "runs"
    shutil.copytree(finished, copy)
    (er,) = copy.glob("er-*")
    for name, removed in (
        ("er-synthetic-clear-s1-0000000000", True),
        ("x-y-z-s0-1111111111", False),
    ):
        shutil.copytree(er, copy / name)
        record = copy / name / "record.json"
        record.unlink() if removed else record.write_text("{")
    return copy


def lines_of(capsys: Capture) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_show_prints_a_screen(out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (path,) = out.glob("er-*[!0]")
    record = read_run(path).record
    assert record is not None
    assert main(["show", "er-synthetic-clear-s0", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    command = next(line for line in text.splitlines() if line.startswith("  sterad train"))
    assert all(len(line) <= 80 for line in text.splitlines() if line != command)
    assert text.startswith("er on synthetic, clear stream, seed 0\n")
    assert "\x1b" not in text
    for expected in (
        path.name,
        "finished",
        "32 images in 4 steps, 2 tasks, ends announced",
        f"{100 * record.final_average_accuracy:.2f}  after the last image",
        f"  task 2  {100 * (record.moments[-1].cells[1] or 0):6.2f}",
        "lr 0.125",
        f"digest {record.data_digest}",
        "commit ",
    ):
        assert expected in text
    assert re.search("[▁▂▃▄▅▆▇█]{10}", text)
    changed = re.search(r"not default((?:.|\n)*?)\n\n", text)
    assert changed is not None
    assert " ".join(changed[1].split()) == (
        "lr 0.125, classes 4, per class 8, test per class 4, tasks 2, memory 8, encoder mlp, "
        "width 2, anytime 4"
    )
    assert parse_train_request(shlex.split(command)[2:]).config().id == record.id


def test_show_prints_the_progress_of_an_unfinished_run(out: Path, capsys: Capture) -> None:
    assert main(["show", "0000000000", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "unfinished: step 4 of 4 (100%), last change " in text
    assert "Continue with" in text
    assert f"--out {out}" in text
    assert "Metrics" not in text


def test_show_names_what_is_damaged(out: Path, capsys: Capture) -> None:
    assert main(["show", "x-y", "--out", str(out)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"sterad: {out}/x-y-z-s0-1111111111/record.json is damaged (")
    assert captured.err.count("\n") == 1


def test_no_color_is_plain_on_a_terminal(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    for value, has_styles in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["show", "er-synthetic-clear-s0", "--out", str(out)]) == 0
        assert ("\x1b[" in terminal.getvalue()) == has_styles


def test_show_and_runs_do_not_import_torch_or_matplotlib(out: Path) -> None:
    code = (
        "import sys; from sterad.cli import main;"
        f"assert main(['show', 'er-synthetic-clear-s0', '--out', {str(out)!r}]) == 0;"
        f"assert main(['runs', {str(out)!r}]) == 0;"
        "assert not {'torch', 'numpy', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("stream", ["clear", "blurry"])
@pytest.mark.parametrize("knows_defaults", [True, False])
def test_the_command_repeats_a_run_of_every_method(
    stream: str, knows_defaults: bool, finished: Path
) -> None:
    (path,) = finished.glob("er-*")
    record = read_run(path).record
    assert record is not None
    for method in METHODS:
        config = RunConfig.of(
            method=method, stream=stream, seed=2, memory=7, test_then_train=True, per_class=30
        )
        values = config.to_dict()
        stored = StoredRun(path, "unfinished", values)
        if knows_defaults:
            origin = {"changed": changed_fields(config)}
            fields = vars(record) | {"config": values, "provenance": origin}
            stored = StoredRun(path, "finished", values, type(record)(**fields))
        command = repeat_command(stored)
        assert parse_train_request(shlex.split(command)[2:]).config().id == config.id
        assert ("--memory-batch" in command) <= (not knows_defaults)
        assert repeat_note(stored) == ""


def test_what_a_command_cannot_give_is_named() -> None:
    values = {"method": {"name": "mine"}, "seed": 0, "digests": {"method code": "1", "data": "2"}}
    stored = StoredRun(Path("runs/mine"), "unfinished", values)
    assert "digests" not in repeat_command(stored)
    assert repeat_note(stored).startswith("It also needs your own method code, data, of which")


def test_runs_lists_every_state(out: Path, capsys: Capture) -> None:
    assert main(["runs", str(out)]) == 0
    captured = capsys.readouterr()
    head, *rows = captured.out.splitlines()
    assert head.split()[:5] == ["run", "method", "dataset", "stream", "seed"]
    assert [row.split()[0] for row in rows] == sorted(path.name for path in out.iterdir())
    assert sum(" finished " in row for row in rows) == 2
    assert sum(" unfinished 100% " in row for row in rows) == 1
    assert sum(" damaged " in row for row in rows) == 1
    assert "x-y-z-s0-1111111111/record.json is damaged" in captured.err
    assert captured.err.endswith(f"4 of 4 runs in {out}\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--method", "er"], ["er", "er"]),
        (["--method", "er", "--state", "finished"], ["er"]),
        (["--where", "lr=0.5"], ["finetune"]),
        (["--where", "memory=8", "--where", "method.lr=0.5"], ["finetune"]),
        (["--where", "memory-batch=64", "--where", "lr=9"], []),
        (["--state", "finished", "--sort", "method"], ["er", "finetune"]),
        (["--dataset", "digits"], []),
        (["--stream", "clear", "--state", "unfinished"], ["er"]),
    ],
)
def test_runs_are_filtered(
    out: Path, capsys: Capture, options: list[str], expected: list[str]
) -> None:
    assert main(["runs", str(out), *options]) == 0
    assert [row.split()[1] for row in lines_of(capsys)[1:]] == expected


def test_runs_are_sorted_by_accuracy_and_seconds(out: Path, capsys: Capture) -> None:
    for sort, column, is_falling in (("accuracy", 5, True), ("seconds", -1, False)):
        assert main(["runs", str(out), "--state", "finished", "--sort", sort]) == 0
        values = [float(row.split()[column]) for row in lines_of(capsys)[1:]]
        assert values == sorted(values, reverse=is_falling)


def test_compare_prints_what_differs(out: Path, capsys: Capture) -> None:
    page = out / "compare.html"
    pair = ["er-synthetic-clear-s0", "finetune"]
    assert main(["runs", "compare", *pair, "--out", str(out), "--html", str(page)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"method\.lr +0\.125 +0\.5\n", text)
    assert not re.search(r"^  memory +8", text, re.MULTILINE)  # equal in both
    first, second = (read_run(next(out.glob(f"{name}*"))).record for name in pair)
    assert first is not None
    assert second is not None
    accuracies = [100 * record.final_average_accuracy for record in (first, second)]
    assert re.search(rf"Final average accuracy +{accuracies[0]:.2f} +{accuracies[1]:.2f} ", text)
    html = page.read_text("utf-8")
    assert html.startswith("<!doctype html>")
    assert all(record.id in html for record in (first, second))
    assert text.endswith(f"{page}\n")


def test_compare_of_an_unfinished_run_has_no_page(out: Path, capsys: Capture) -> None:
    pair = ["0000000000", "finetune", "--out", str(out)]
    assert main(["runs", "compare", *pair]) == 0
    assert "(unfinished)" in capsys.readouterr().out
    assert main(["runs", "compare", *pair, "--html", str(out / "page.html")]) == 2
    assert "is unfinished: the page compares finished runs" in capsys.readouterr().err
    assert main(["runs", "compare", *pair, "--html", str(out / "page.pdf")]) == 2
    assert "its name must end in .html" in capsys.readouterr().err
    assert not list(out.glob("page*"))


def test_delete_asks_first(out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = out.glob("finetune-*")
    for answer, is_deleted in (("\n", False), ("", False), ("no\n", False), ("y\n", True)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        code = main(["runs", "delete", "finetune", "--out", str(out)])
        assert code == (0 if is_deleted else 1)
        assert path.exists() != is_deleted
        assert "Delete this run? [y/N]" in capsys.readouterr().out
    assert len(list(out.iterdir())) == 3


def test_delete_removes_all_or_none(out: Path, capsys: Capture) -> None:
    unfinished = "er-synthetic-clear-s1-0000000000"
    delete = ["runs", "delete", "finetune", unfinished, "--yes", "--out", str(out)]
    with RunDirectory(out, unfinished).locked():
        assert main(delete) == 2
        assert "is being written by process" in capsys.readouterr().err
    assert len(list(out.iterdir())) == 4
    assert main(delete) == 0
    deleted = lines_of(capsys)
    assert len(deleted) == 2
    assert all(line.startswith(f"deleted {out}/") for line in deleted)
    assert len(list(out.iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("show", "sterad show needs a RUN"),
        ("show nothing --out {out}", "there is no run 'nothing' in"),
        ("show er --out {out}", "'er' is the beginning of 2 runs"),
        ("show {out}", "is a folder, not a run"),
        ("show {notes}", "notes.txt' is not the record of a run: give a record.json"),
        ("runs detele er --yes", "no command of `sterad runs`: did you mean 'delete'?"),
        ("runs {out}/absent", "is not a folder of runs"),
        ("runs {empty}", "has no runs"),
        ("runs {out} --where memory", "give FIELD=VALUE"),
        ("runs {out} --where memri=2", "no run has a field 'memri'"),
        ("runs {out} --state odd", "--state 'odd' is unknown"),
        ("runs compare er-synthetic-clear-s0 --out {out}", "needs B: see"),
        ("runs compare finetune x-y --out {out}", "is damaged"),
        ("runs delete", "sterad runs delete needs a RUN"),
        ("runs delete {out} --yes", "is a folder, not a run"),
        ("runs delete {out}/x-y-z-s0-1111111111/config.json --yes", "is damaged"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: str, sentence: str, out: Path, tmp_path: Path, capsys: Capture
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    before = sorted(out.rglob("*"))
    assert main(shlex.split(arguments.format(out=out, empty=empty, notes=notes))) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert sorted(out.rglob("*")) == before


def test_names_cannot_give_orders_to_the_terminal(capsys: Capture) -> None:
    table = make_table("name")
    table.add_row("\x1b]0;title\x07\x1b[31mred")
    print_table(make_console(), table)
    assert capsys.readouterr().out == "name\n?]0;title??[31mred\n"
