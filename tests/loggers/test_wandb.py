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
    """Yield the records of an offline file: blocks of 32 kB, each record with a header of seven."""
    record = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    content, at, whole = file.read_bytes(), 7, b""
    while at + 7 <= len(content):
        _, size, kind = struct.unpack("<IHB", content[at : at + 7])
        if kind == 0:  # what is left of a block is empty
            at += (-at) % 32768
            continue
        whole += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # all of it, or its last part
            yield record.FromString(whole)
            whole = b""


def written(file: Path) -> list[Any]:
    """Return the records of a file once its end is there: a process of wandb's own writes it."""
    for _ in range(600):
        if any(one.HasField("exit") for one in records(file)):
            break
        time.sleep(0.1)
    return list(records(file))


def test_offline_runs_read_back(
    killed: list[Any], continued: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    folder = tmp_path / "mine-s0"
    folder.mkdir()
    told: list[Any] = []
    for events in (killed, continued):
        time.sleep(1.1)  # wandb names its folder by the second: no real run is continued within one
        before = set(folder.glob("wandb/offline-run-*-mine-s0/run-mine-s0.wandb"))
        with LOGGERS["wandb"]("mine-s0", folder, CONFIG) as logger:
            for event in events:
                logger.emit(event)
        new = set(folder.glob("wandb/offline-run-*-mine-s0/run-mine-s0.wandb")) - before
        assert len(new) == 1, "offline by default, and the id is the run's"
        told += written(new.pop())
    (run, *_) = (one.run for one in told if one.HasField("run"))
    assert (run.run_id, run.project) == ("mine-s0", "sterad")
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert config["method"] == {"name": "er"}
    assert config["seed"] == 3
    rows = [_row(one.history) for one in told if one.HasField("history")]
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
