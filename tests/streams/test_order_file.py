import dataclasses
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sterad.data import Dataset, Synthetic
from sterad.errors import SteradError
from sterad.streams import (
    Blurry,
    Clear,
    Description,
    Domain,
    IBlurry,
    LongTail,
    ReplayFile,
    Shift,
    Stream,
    read_order,
    save_order,
)
from sterad.streams.domain_transforms import DomainTransform
from sterad.streams.order_file import ARRAYS, _columns_digest, read_hash


def data() -> Dataset:
    return Synthetic(per_class=12, test_per_class=3).load()


@pytest.mark.parametrize(
    "source", [Clear(5), IBlurry(5, imbalance=3), Domain("permutation", 3), Domain("rotation", 2)]
)
def test_a_saved_stream_is_restored_completely(source: Description, tmp_path: Path) -> None:
    stream = source.open(data(), 4)
    back = read_order(save_order(stream, tmp_path / "order.npz"), data())
    assert (back.digest, back.tasks, back.ends) == (stream.digest, stream.tasks, stream.ends)
    assert (back.name, back.batch_size, back.shifts) == (
        stream.name,
        stream.batch_size,
        stream.shifts,
    )
    for step in range(len(stream)):
        assert torch.equal(back.batch(step).x, stream.batch(step).x)
    for one, other in zip(stream.evaluations(), back.evaluations(), strict=True):
        assert (one.name, one.classes, one.transform, one.since) == (
            other.name,
            other.classes,
            other.transform,
            other.since,
        )
        np.testing.assert_array_equal(one.indices, other.indices)


def test_equal_streams_make_equal_files_that_numpy_opens(tmp_path: Path) -> None:
    stream = Clear(5).open(data(), 0)
    paths = [save_order(Clear(5).open(data(), 0), tmp_path / name) for name in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with np.load(paths[0], allow_pickle=False) as stored:
        assert str(stored["hash"]) == read_hash(paths[1])
        assert str(stored["dataset"]) == "synthetic"
        np.testing.assert_array_equal(stored["order"], stream.order)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def altered(path: Path, **changes: Any) -> Path:
    with np.load(path, allow_pickle=False) as stored:
        columns = {name: stored[name] for name in stored.files}
    np.savez(path, **(columns | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": np.arange(121)}, "within the 120 training images"),
        ({"scored": np.arange(30) + 1}, "test images that the dataset does not have"),
        ({"scored": np.arange(30) - 1}, "test images that the dataset does not have"),
        ({"plan": "{"}, "damaged"),
        ({"plan": "{}"}, "damaged .*tasks|evaluations"),
        ({"plan": "[" * 100_000}, "damaged"),
        ({"plan": np.arange(3)}, "damaged"),
        ({"ends": np.array(7)}, "damaged"),
        ({"batch_size": "many"}, "damaged"),
    ],
)
def test_a_wrong_file_raises_even_if_its_hash_is_right(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = save_order(Clear(5).open(data(), 0), tmp_path / "order.npz")
    columns = dict(np.load(path)) | changes
    columns["hash"] = _columns_digest(columns | {k: np.asarray(columns[k]) for k in ARRAYS})
    with pytest.raises(SteradError, match=message):
        read_order(altered(path, **columns), data())


def other_plan(key: str, value: object) -> Callable[[dict[str, Any]], object]:
    def change(columns: dict[str, Any]) -> object:
        plan = json.loads(str(columns["plan"]))
        (plan["evaluations"][0] if key in plan["evaluations"][0] else plan)[key] = value
        return json.dumps(plan)

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("order", lambda columns: np.roll(columns["order"], 1)),
        ("scored", lambda columns: np.roll(columns["scored"], 1)),
        ("ends", lambda columns: columns["ends"] - 1),
        ("batch_size", lambda _: 7),
        ("name", lambda _: "other"),
        ("dataset", lambda _: "other"),
        ("plan", other_plan("tasks", [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]])),
        ("plan", other_plan("settings", "seed 7")),
        ("plan", other_plan("classes", [7])),
        ("plan", other_plan("since", 12)),
        ("plan", other_plan("under", {"name": "rotation", "degrees": 90.0})),
        ("hash", lambda _: np.array([1])),
    ],
)
def test_the_hash_covers_all_that_a_file_contains(
    name: str, change: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    path = save_order(Clear(5).open(data(), 0), tmp_path / "order.npz")
    changed = altered(path, **{name: change(dict(np.load(path)))})
    with pytest.raises(SteradError, match=r"is damaged .*\(its hash is .*, its content"):
        read_order(changed, data())
    with pytest.raises(SteradError, match=r"is damaged .*\(its hash is .*, its content"):
        ReplayFile(changed).with_hash()


def test_an_old_format_raises(tmp_path: Path) -> None:
    path = save_order(Clear(5).open(data(), 0), tmp_path / "order.npz")
    with pytest.raises(SteradError, match="has format 1 and this version reads 2: save the order"):
        read_order(altered(path, format=1), data())


def test_a_file_that_declares_a_huge_shape_raises_before_memory_is_allocated(
    tmp_path: Path, error_within_limits: Callable[..., str]
) -> None:
    path = save_order(Clear(5).open(data(), 0), tmp_path / "order.npz")
    dataset = data()
    for size in (120, 1 << 26):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            header = {"descr": "<i8", "fortran_order": False, "shape": (1 << 32,)}
            with archive.open("order.npy", "w") as member:
                np.lib.format.write_array_header_1_0(member, header)
                member.write(bytes(size))
        message = error_within_limits(lambda: read_order(path, dataset))
        assert "order.npz' is damaged" in message


def test_another_dataset_raises(tmp_path: Path) -> None:
    path = save_order(Clear(5).open(data(), 0), tmp_path / "order.npz")
    other = dataclasses.replace(data(), name="mine", test_labels=np.roll(data().test_labels, 1))
    with pytest.raises(SteradError, match="'synthetic' and 'mine' has other labels"):
        read_order(path, other)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive at all", b"\x93NUMPY"])
def test_other_files_raise(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "order.npz"
    path.write_bytes(content)
    with pytest.raises(
        SteradError, match=r"order\.npz' is damaged .*: save the order again with `sterad"
    ):
        read_order(path, data())


def test_a_truncated_file_raises(tmp_path: Path) -> None:
    path = save_order(Clear(5).open(data(), 0), tmp_path / "order.npz")
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(SteradError, match="damaged"):
            read_order(path, data())


def test_a_plain_array_and_a_folder_raise(tmp_path: Path) -> None:
    np.save(tmp_path / "order.npy", np.arange(3))
    os.mkfifo(tmp_path / "fifo")
    for name, message in (("order.npy", "damaged"), ("", "no order file"), ("fifo", "no order")):
        with pytest.raises(SteradError, match=message):
            read_order(tmp_path / name, data())


def test_a_missing_file_raises(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="there is no order file"):
        read_order(tmp_path / "order.npz", data())


def test_an_unwritable_path_raises_and_changes_nothing(
    tmp_path: Path,
) -> None:
    stream = Clear(5).open(data(), 0)
    with pytest.raises(SteradError, match=r"cannot write .*: .*choose another location"):
        save_order(stream, tmp_path / "missing" / "order.npz")
    (tmp_path / "taken").mkdir()
    with pytest.raises(SteradError, match=r"cannot write .*: .*choose another location"):
        save_order(stream, tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_custom_transformation_raises(tmp_path: Path) -> None:
    class Mine(DomainTransform):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x

    stream: Stream = dataclasses.replace(Clear(5).open(data(), 0), shifts=(Shift(0, Mine()),))
    with pytest.raises(SteradError, match="cannot be saved in an order file"):
        save_order(stream, tmp_path / "order.npz")


def test_a_replayed_stream_ignores_the_seed(tmp_path: Path) -> None:
    data = Synthetic(per_class=12, image_size=1).load()
    stream = Blurry(tasks=5, scale=9.0).open(data, 3)
    path = save_order(stream, tmp_path / "order.npz")
    for seed in (0, 9):
        assert ReplayFile(path).open(data, seed).digest == stream.digest
    assert ReplayFile(path, hash=read_hash(path)[:8]).open(data, 0).digest == stream.digest
    with pytest.raises(SteradError, match="and not abc: give the file of that stream"):
        ReplayFile(path, hash="abc").open(data, 0)


def test_settled_stores_the_hash_of_the_file(tmp_path: Path) -> None:
    data = Synthetic(per_class=12, image_size=1).load()
    stream = Blurry(tasks=5, scale=9.0).open(data, 3)
    path = save_order(stream, tmp_path / "order.npz")
    hashed = ReplayFile(path).with_hash()
    assert hashed == ReplayFile(path, hash=read_hash(path)) == hashed.with_hash()
    save_order(Blurry(tasks=5, scale=9.0).open(data, 4), path)
    with pytest.raises(SteradError, match="give the file of that stream"):
        hashed.open(data, 0)
    with pytest.raises(SteradError, match="there is no order file"):
        ReplayFile(tmp_path / "none.npz").with_hash()


def test_a_replayed_stream_accepts_imbalance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Synthetic(per_class=12, image_size=1).load()
    save_order(Blurry(tasks=5, scale=9.0).open(data, 3), tmp_path / "order.npz")
    monkeypatch.chdir(tmp_path)
    thin = LongTail(base="replay-file").open(data, 3)
    assert thin.digest == Blurry(tasks=5, scale=9.0, imbalance=100).open(data, 3).digest


def test_a_missing_default_file_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SteradError, match=r"no order file 'order\.npz'"):
        ReplayFile().open(Synthetic(per_class=2).load(), 0)
