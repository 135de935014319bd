"""An interrupted run continues from a readable checkpoint, under the conditions it began with."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sterad import RunConfig, RunRecord, run
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments import resume
from sterad.experiments.checkpoint import load_checkpoint, save_checkpoint
from sterad.loggers import Logger
from sterad.results.run_directory import RunDirectory

SMALL = {"method": "er", "dataset": "synthetic", "classes": 4, "per_class": 20, "width": 2}
SMALL |= {"encoder": "mlp", "memory": 10}


class InterruptionError(Exception):
    """Stands for whatever ends a process."""


class InterruptAt(Logger):
    """Raises at the first event of a kind at or after a step."""

    def __init__(self, kind: str, step: int) -> None:
        self.kind, self.step = kind, step

    def emit(self, event: Mapping[str, Any]) -> None:
        if event["event"] == self.kind and event["step"] >= self.step:
            raise InterruptionError


def start(config: RunConfig, out: Path, *loggers: Logger, **options: Any) -> RunRecord:
    return run(config, out, Execution(threads=1), 1, loggers, **options)


def interrupt(config: RunConfig, out: Path, kind: str = "checkpoint", step: int = 4) -> None:
    with pytest.raises(InterruptionError):
        start(config, out, InterruptAt(kind, step))


def events_of(folder: RunDirectory) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder.events.read_text().splitlines()]


@pytest.fixture
def config() -> RunConfig:
    return RunConfig.of(**SMALL)


@pytest.fixture
def whole(config: RunConfig, tmp_path: Path) -> RunRecord:
    return start(config, tmp_path / "whole")


@pytest.fixture
def folder(config: RunConfig, tmp_path: Path) -> RunDirectory:
    interrupt(config, tmp_path)
    return RunDirectory(tmp_path, config.id)


def test_the_cost_of_a_resumed_run_is_that_of_an_uninterrupted_one(tmp_path: Path) -> None:
    config = RunConfig.of(**SMALL | {"teacher": "ema", "views": 2})
    whole = start(config, tmp_path / "whole")
    interrupt(config, tmp_path / "resumed")
    cost = start(config, tmp_path / "resumed").cost
    assert cost is not None
    assert cost == whole.cost
    trained, images = round(cost.pixels - cost.forward_pixels / 3), whole.images_per_batch
    assert trained + cost.forward_pixels == round(images * whole.stream.steps) * 8 * 8
    assert cost.forward_pixels > 0


def test_a_checkpoint_of_a_version_without_counts_gives_a_record_without_cost(
    config: RunConfig, folder: RunDirectory, whole: RunRecord
) -> None:
    state = load_checkpoint(folder.checkpoint, config.id)
    del state["session"]["learner"]["passes"], state["session"]["consolidation_passes"]
    save_checkpoint(folder.checkpoint, config.id, state)
    record = start(config, folder.path.parent)
    assert record.metrics() == whole.metrics()
    assert record.cost is None


@pytest.mark.parametrize("damage", ["flip a bit", "truncate", "delete"])
def test_a_damaged_checkpoint_falls_back_to_the_previous_one(
    damage: str,
    config: RunConfig,
    folder: RunDirectory,
    whole: RunRecord,
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = bytearray(folder.checkpoint.read_bytes())
    content[len(content) // 2] ^= 4
    if damage == "delete":
        folder.checkpoint.unlink()
    else:
        folder.checkpoint.write_bytes(content if damage == "flip a bit" else content[:-1])
    assert start(config, folder.path.parent).metrics() == whole.metrics()
    said = "does not match its SHA-256" in (printed := capsys.readouterr().err)
    assert said == ("continuing from checkpoint.previous.pt" in printed) == (damage != "delete")
    resumed = [event["step"] for event in events_of(folder) if event["event"] == "resume"]
    assert resumed == [2], "interrupted while writing the checkpoint of step 4"


def test_two_damaged_checkpoints_are_refused(config: RunConfig, folder: RunDirectory) -> None:
    for file in (folder.checkpoint, folder.previous_checkpoint):
        file.write_bytes(b"damaged")
    with pytest.raises(SteradError, match=r"previous\.pt' is damaged .*: delete .* to start from"):
        start(config, folder.path.parent)


def test_a_finished_run_keeps_one_checkpoint(config: RunConfig, folder: RunDirectory) -> None:
    start(config, folder.path.parent)
    assert folder.checkpoint.exists()
    assert not folder.previous_checkpoint.exists()


@pytest.mark.parametrize("name", ["torch", "numpy", "sterad", "processor", "data"])
def test_changed_conditions_are_refused_or_marked(
    name: str, config: RunConfig, folder: RunDirectory, whole: RunRecord
) -> None:
    state = load_checkpoint(folder.checkpoint, config.id)
    now = state["conditions"][name]
    state["conditions"][name] = "another"
    save_checkpoint(folder.checkpoint, config.id, state)
    change = "the data changed" if name == "data" else f"{name} was another and is {now}"
    with pytest.raises(SteradError, match=f"as it began: {re.escape(change)}") as caught:
        start(config, folder.path.parent)
    assert "delete" in str(caught.value)
    assert "--accept-changes" in str(caught.value)
    interrupted = InterruptAt("checkpoint", 6)
    with pytest.raises(InterruptionError):
        start(config, folder.path.parent, interrupted, accept_changes=True)
    record = start(config, folder.path.parent)  # the conditions are those of the last process
    assert record.changes == (change,)
    assert RunRecord.from_json(folder.record.read_bytes()) == record
    assert record.metrics() == whole.metrics()


def test_an_interrupted_run_with_other_data_is_not_started_again_silently(tmp_path: Path) -> None:
    def save(first: int) -> RunConfig:
        pixels = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)
        pixels[0] = first
        labels = np.arange(40) % 4
        file = tmp_path / "own.npz"
        np.savez(file, x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
        own = SMALL | {"dataset": "npz", "npz_file": str(file)}
        return RunConfig.of(**{k: v for k, v in own.items() if k not in ("classes", "per_class")})

    out, old = tmp_path / "runs", save(0)
    interrupt(old, out, step=2)
    new = save(255)
    assert new.id != old.id
    with pytest.raises(SteradError, match=f"the run {old.id} cannot be continued.*the data chang"):
        start(new, out)
    assert not RunDirectory(out, new.id).path.exists(), "nothing is written"
    with (
        RunDirectory(out, old.id).locked(),
        pytest.raises(SteradError, match=f"{old.id}' is being written by process"),
    ):
        start(new, out, accept_changes=True)
    record = start(new, out, accept_changes=True)
    assert record.id == new.id
    assert "the data changed" in record.changes[0]
    assert events_of(RunDirectory(out, new.id))[0]["event"] == "resume"


def test_a_run_that_has_no_checkpoint_yet_starts_again_under_new_conditions(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(config, tmp_path, "start", 0)
    monkeypatch.setattr(resume, "current_conditions", lambda device: {"torch": "99"})
    assert start(config, tmp_path).changes == ()


def test_a_kill_between_the_end_and_the_record_gives_one_end(
    config: RunConfig, tmp_path: Path, whole: RunRecord
) -> None:
    interrupt(config, tmp_path, "end", 0)
    folder = RunDirectory(tmp_path, config.id)
    assert events_of(folder)[-1]["event"] == "end"
    assert not folder.record.exists()
    assert start(config, tmp_path).metrics() == whole.metrics()
    assert [event["event"] for event in events_of(folder)].count("end") == 1
