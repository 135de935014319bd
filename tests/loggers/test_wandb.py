import importlib
import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sterad.loggers import LOGGERS

CONFIG = {"method": {"name": "er"}, "seed": 3}


def records(file: Path) -> Iterator[Any]:
    """Yield the records of an offline file: blocks of 32 kB, records with headers of 7 bytes."""
    record = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    content, position, data = file.read_bytes(), 7, b""
    while position + 7 <= len(content):
        _, size, kind = struct.unpack("<IHB", content[position : position + 7])
        if kind == 0:  # the rest of the block is empty
            position += (-position) % 32768
            continue
        data += content[position + 7 : position + 7 + size]
        position += 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            yield record.FromString(data)
            data = b""


def wait_for_records(file: Path) -> list[Any]:
    """Return the records of a file once it is complete: a process of wandb writes it."""
    for _ in range(600):
        if any(record.HasField("exit") for record in records(file)):
            break
        time.sleep(0.1)
    return list(records(file))


@pytest.mark.slow
def test_offline_runs_are_read_back(
    killed: list[Any], resumed: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    folder = tmp_path / "mine-s0"
    folder.mkdir()
    logged: list[Any] = []
    for events in (killed, resumed):
        time.sleep(1.1)  # wandb names its folders by the second
        before = set(folder.glob("wandb/offline-run-*-mine-s0/run-mine-s0.wandb"))
        with LOGGERS["wandb"]("mine-s0", folder, CONFIG) as logger:
            for event in events:
                logger.emit(event)
        new = set(folder.glob("wandb/offline-run-*-mine-s0/run-mine-s0.wandb")) - before
        assert len(new) == 1, "offline by default, under the id of the run"
        logged += wait_for_records(new.pop())
    (run, *_) = (record.run for record in logged if record.HasField("run"))
    assert (run.run_id, run.project) == ("mine-s0", "sterad")
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert config["method"] == {"name": "er"}
    assert config["seed"] == 3
    rows = [_row(record.history) for record in logged if record.HasField("history")]
    losses = [(row["_step"], row["loss"]) for row in rows if "loss" in row]
    assert losses[-1] == (3, 1.25)
    assert (1, 2.5) in losses
    assert [row["accuracy"] for row in rows if "accuracy" in row][-1] == 0.75
    assert rows[-1]["final_average_accuracy"] == 0.75


def _row(history: Any) -> dict[str, Any]:
    return {
        (item.key or "/".join(item.nested_key)): json.loads(item.value_json)
        for item in history.item
    }
