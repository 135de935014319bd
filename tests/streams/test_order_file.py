import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sterad.data import Dataset, Synthetic
from sterad.errors import SteradError
from sterad.streams import (
    Clear,
    Description,
    Domain,
    IBlurry,
    Shift,
    Stream,
    read_order,
    save_order,
)
from sterad.streams.transforms import Transform


def data() -> Dataset:
    return Synthetic(per_class=12, test_per_class=3).load()


@pytest.mark.parametrize(
    "source", [Clear(5), IBlurry(5, imbalance=3), Domain("permutation", 3), Domain("rotation", 2)]
)
def test_a_saved_stream_comes_back_whole(source: Description, tmp_path: Path) -> None:
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
        assert str(stored["hash"]) == stream.digest
        assert str(stored["dataset"]) == "synthetic"
        np.testing.assert_array_equal(stored["order"], stream.order)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def altered(path: Path, **changes: Any) -> Path:
    with np.load(path, allow_pickle=False) as stored:
        columns = {name: stored[name] for name in stored.files}
    np.savez(path, **(columns | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"order": np.arange(120)}, "damaged .its hash says"),
        ({"batch_size": 7}, "damaged .its hash says"),
        ({"order": np.arange(121)}, "within the 120 training images"),
        ({"format": 2}, "has format 2"),
        ({"plan": "{"}, "damaged"),
        ({"plan": "{}"}, "damaged .KeyError"),
        ({"hash": np.array([object()])}, "damaged"),
    ],
)
def test_an_altered_file_gets_a_sentence(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    path = save_order(Clear(5).open(data(), 0), tmp_path / "order.npz")
    with pytest.raises(SteradError, match=sentence):
        read_order(altered(path, **changes), data())


def test_another_dataset_gets_a_sentence(tmp_path: Path) -> None:
    path = save_order(Clear(5).open(data(), 0), tmp_path / "order.npz")
    other = dataclasses.replace(data(), name="mine", test_labels=np.roll(data().test_labels, 1))
    with pytest.raises(SteradError, match="'synthetic' and 'mine' as loaded now has other labels"):
        read_order(path, other)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive at all", b"\x93NUMPY"])
def test_what_is_no_order_file_gets_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "order.npz"
    path.write_bytes(content)
    with pytest.raises(SteradError, match=r"order\.npz' is damaged \(it is no whole \.npz file\)"):
        read_order(path, data())


def test_a_truncated_file_gets_a_sentence(tmp_path: Path) -> None:
    path = save_order(Clear(5).open(data(), 0), tmp_path / "order.npz")
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(SteradError, match="damaged"):
            read_order(path, data())


def test_a_plain_array_and_a_folder_get_sentences(tmp_path: Path) -> None:
    np.save(tmp_path / "order.npy", np.arange(3))
    for path in (tmp_path / "order.npy", tmp_path):
        with pytest.raises(SteradError, match="damaged"):
            read_order(path, data())


def test_a_missing_file_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="there is no order file"):
        read_order(tmp_path / "order.npz", data())


def test_a_place_that_cannot_be_written_gets_a_sentence_and_keeps_what_was_there(
    tmp_path: Path,
) -> None:
    stream = Clear(5).open(data(), 0)
    with pytest.raises(SteradError, match=r"cannot write .*: .*choose another place"):
        save_order(stream, tmp_path / "missing" / "order.npz")
    (tmp_path / "taken").mkdir()
    with pytest.raises(SteradError, match=r"cannot write .*: .*choose another place"):
        save_order(stream, tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_transformation_of_ones_own_gets_a_sentence(tmp_path: Path) -> None:
    class Mine(Transform):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x

    stream: Stream = dataclasses.replace(Clear(5).open(data(), 0), shifts=(Shift(0, Mine()),))
    with pytest.raises(SteradError, match="not one that a file can name"):
        save_order(stream, tmp_path / "order.npz")
