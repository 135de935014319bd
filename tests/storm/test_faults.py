"""Every write of a run fails once, at every position; the same command then ends as if none had."""

import contextlib
import io
import shutil
from collections import Counter
from pathlib import Path

import pytest

from sterad.cli import main
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory
from tests.storm.checks import find_event_problems, read_events, run_directories
from tests.storm.disk import FAULTS, Crash, Disk

TRAIN = [
    *("train", "er", "--dataset=synthetic", "--classes=2", "--per-class=10", "--test-per-class=2"),
    *("--tasks=2", "--memory=4", "--memory-batch=2", "--encoder=mlp", "--width=1", "--anytime=2"),
    *("--batch-size=5", "--augmentation=none", "--threads=1", "--checkpoint-every=1"),
]
QUICK_STRIDE = 16
"""`make test` tries every sixteenth position, `make check` all of them."""


def train(out: Path) -> tuple[int, str]:
    """Run the command; return its exit code and what it printed as errors."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = main([*TRAIN, f"--out={out}"])
    return code, errors.getvalue()


def run_directory(out: Path) -> RunDirectory:
    (directory,) = run_directories(out)
    return directory


def read_record(out: Path) -> RunRecord:
    record = run_directory(out).read_record()
    assert record is not None
    return record


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an undisturbed run."""
    out = tmp_path_factory.mktemp("reference") / "runs"
    assert train(out)[0] == 0
    return out


@pytest.fixture(scope="module")
def finished_disk(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    """Return a disk on which a run has ended without a fault."""
    disk = Disk(tmp_path_factory.mktemp("counted"))
    with disk.installed():
        assert train(disk.folder / "runs")[0] == 0
    return disk


@pytest.fixture
def operations(finished_disk: Disk) -> list[str]:
    """Return the operations of a run; their number is that of the positions of faults."""
    return finished_disk.operations


def test_a_finished_run_survives_a_power_cut(finished_disk: Disk) -> None:
    durable = finished_disk.after_power_cut()
    for file in finished_disk.folder.glob("*/*/*"):
        if file.name != "lock":
            assert durable[file] == file.read_bytes(), file


def check_position(folder: Path, fault: str, position: int, reference: Path) -> str:
    """Fail at one position, then run the same command again; return what the fault led to."""
    folder.mkdir()
    disk = Disk(folder, fault, position)
    case = f"{fault} at operation {position}"
    result = ""
    try:
        with disk.installed():
            code, errors = train(folder / "runs")
        assert "Traceback" not in errors, case
        assert code in (0, 2), case
        result = "unharmed" if code == 0 else "refused"
        assert code == 0 or errors.splitlines()[-1].startswith("sterad: "), case
        assert code == 2 or read_record(folder / "runs").metrics() == (
            read_record(reference).metrics()
        ), case
    except (Crash, RuntimeError):  # torch.save raises its own error
        if disk.crashed is None:
            raise
    if disk.crashed is not None:
        result = "crashed"
        disk.restore()
    code, errors = train(folder / "runs")
    assert code == 0, f"{case}: {errors}"
    check_result(folder / "runs", reference, fault, case)
    shutil.rmtree(folder)
    return result


def check_result(out: Path, reference: Path, fault: str, case: str) -> None:
    """Check that a run equals the undisturbed one; events may be lost in a power cut."""
    assert read_record(out).metrics() == read_record(reference).metrics(), case
    directory = run_directory(out)
    events, expected = read_events(directory), read_events(run_directory(reference))
    steps = [event["step"] for event in events]
    assert steps == sorted(steps), case
    assert [event["event"] for event in events].count("end") == 1, case
    assert "power cut" in fault or list(find_event_problems(events, expected)) == [], case
    assert not list(directory.path.glob(".*.tmp")), case


def check_positions(
    fault: str, operations: list[str], positions: range, folder: Path, reference: Path
) -> Counter[str]:
    """Check the positions at which a fault is possible."""
    only_writes = fault in ("short", "torn")
    possible = [k for k in positions if operations[k] == "write" or not only_writes]
    return Counter(check_position(folder / str(k), fault, k, reference) for k in possible)


@pytest.mark.parametrize("fault", FAULTS)
def test_some_failing_writes(
    fault: str, operations: list[str], reference: Path, tmp_path: Path
) -> None:
    positions = range(FAULTS.index(fault), len(operations), QUICK_STRIDE)
    assert check_positions(fault, operations, positions, tmp_path, reference).total() > 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_every_failing_write(
    fault: str, operations: list[str], reference: Path, tmp_path: Path
) -> None:
    positions = range(len(operations))
    results = check_positions(fault, operations, positions, tmp_path, reference)
    print(f"{fault}: {results.total()} positions of {len(operations)} operations, {dict(results)}")
