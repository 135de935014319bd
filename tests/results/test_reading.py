import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.results.reading import read_records
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def keep(out: Path, folder: str, text: str) -> None:
    (out / folder).mkdir(parents=True)
    (out / folder / "record.json").write_text(text, encoding="utf-8")


def test_records_come_back_equal_and_by_id(tmp_path: Path, small_record: Build) -> None:
    wanted = [small_record({"seed": seed}, name) for seed, name in enumerate("cab")]
    for folder, record in zip(("1", "2", "3"), wanted, strict=True):
        keep(tmp_path, folder, record.to_json())
    (tmp_path / "unfinished").mkdir()
    records, left_out = read_records(tmp_path)
    assert left_out == []
    assert records == sorted(wanted, key=lambda record: record.id)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 99}, "has schema 99"),
        ({"seconds": None}, "not a finite number"),
        ({"final_average_accuracy": "high"}, "final_average_accuracy is 'high'"),
        ({"anytime_accuracy": float("nan")}, "anytime_accuracy is nan"),
        ({"accuracy_matrix": [[0.5]]}, "not the 2 columns of its evaluations"),
        ({"moments": []}, "no moments"),
        ({"stream": [1, 2]}, "is damaged"),
        ({"sphere": {"classes": [0, 1, 7], "frames": []}}, "classes beyond its 2"),
        ({"surprise": 1}, "a newer one wrote it"),
        ({"confusion": [[1, 2]]}, "not the 2 rows and columns of its classes"),
        ({"confusion": [[1, 2], [3, None]]}, "is damaged"),
        ({"losses": [[1, None, 2.0]]}, "is damaged"),
        ({"losses": [[1, float("inf"), 2.0]]}, "not a finite number"),
    ],
)
def test_what_contradicts_itself_is_named_and_left_out(
    tmp_path: Path, small_record: Build, change: dict[str, Any], said: str
) -> None:
    good = small_record({"seed": 0}, "good")
    keep(tmp_path, "good", good.to_json())
    keep(tmp_path, "bad", json.dumps({**dataclasses.asdict(good), "id": "bad", **change}))
    records, left_out = read_records(tmp_path)
    assert [record.id for record in records] == ["good"]
    assert len(left_out) == 1
    assert left_out[0].startswith("bad/record.json")
    assert said in left_out[0]


@pytest.mark.parametrize("end", [0, 1, 100, -2])
def test_a_cut_file_is_left_out(tmp_path: Path, small_record: Build, end: int) -> None:
    keep(tmp_path, "cut", small_record({}, "cut").to_json()[:end])
    records, (sentence,) = read_records(tmp_path)
    assert records == []
    assert "cut/record.json is damaged" in sentence


def test_bytes_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / "record.json").write_bytes(b"\xff\xfe\x00\x80")
    assert read_records(tmp_path)[0] == []
    (tmp_path / "folder" / "record.json").mkdir(parents=True)
    assert [line.split("/")[0] for line in read_records(tmp_path)[1]] == ["folder", "noise"]


def test_a_copied_run_counts_once(tmp_path: Path, small_record: Build) -> None:
    for folder in ("one", "two"):
        keep(tmp_path, folder, small_record({}, "same").to_json())
    records, left_out = read_records(tmp_path)
    assert len(records) == 1
    assert left_out == ["two/record.json repeats the run same: delete one of the two"]


def test_studies_beside_each_other_are_read_and_share_runs(
    tmp_path: Path, small_record: Build
) -> None:
    mine, shared = (small_record({"seed": seed}, name) for seed, name in enumerate("ab"))
    keep(tmp_path, "a", mine.to_json())
    for folder in ("first/b", "second/b"):
        keep(tmp_path, folder, shared.to_json())
    keep(tmp_path, "second/broken", "{")
    records, left_out = read_records(tmp_path)
    assert records == [mine, shared]
    assert [one.split()[0] for one in left_out] == ["second/broken/record.json"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="sterad train agd-fd --out"):
        read_records(tmp_path / "nowhere")
