import dataclasses
import hashlib
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sterad.data import Dataset, Synthetic
from sterad.errors import SteradError
from sterad.streams import STREAMS, Batch, Blurry, Boundary, Clear, Description, Iid, Shift, Stream
from sterad.streams.domain_transforms import Brightness
from sterad.streams.stream import digest_of


def dataset(classes: int, images: int, seed: int = 0) -> Dataset:
    """Return images whose pixels encode their index, at least one per class."""
    labels = np.concatenate(
        [np.arange(classes), np.random.default_rng(seed).integers(0, classes, images)]
    )
    index = np.arange(len(labels))
    pixels = np.stack([index // 256, index % 256], axis=1).astype(np.uint8)
    inputs = np.repeat(pixels, 2, axis=1).reshape(-1, 1, 2, 2)
    return Dataset.from_arrays(inputs, labels, inputs[:classes], np.arange(classes))


def decoded(batch: Batch) -> list[int]:
    pixels = (batch.x * 255).round().long()
    return (pixels[:, 0, 0, 0] * 256 + pixels[:, 0, 1, 0]).tolist()


def batches(stream: Stream) -> list[Batch]:
    return [stream.batch(step) for step in range(len(stream))]


descriptions = st.one_of(
    st.builds(Clear, tasks=st.just(3), batch_size=st.integers(1, 12)),
    st.builds(Iid, tasks=st.just(3), batch_size=st.integers(1, 12)),
    st.builds(
        Blurry,
        tasks=st.just(3),
        batch_size=st.integers(1, 12),
        scale=st.floats(1e-3, 1e6),
    ),
)


@settings(max_examples=60, deadline=None)
@given(descriptions, st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_a_stream_shows_every_image_once(source: Description, images: int, seed: int) -> None:
    data = dataset(6, images)
    stream = source.open(data, seed)
    shown = batches(stream)
    assert [index for batch in shown for index in decoded(batch)] == stream.order.tolist()
    assert sorted(stream.order.tolist()) == list(range(6 + images))
    assert torch.cat([b.y for b in shown]).tolist() == data.train_labels[stream.order].tolist()
    assert all(1 <= len(batch) <= stream.batch_size for batch in shown)
    for step in range(len(stream) + 1):
        assert stream.samples_after(step) == sum(map(len, shown[:step]))


@settings(max_examples=30, deadline=None)
@given(descriptions, st.integers(0, 40))
def test_a_boundary_is_at_the_end_of_each_announced_task(source: Description, images: int) -> None:
    stream = source.open(dataset(6, images), seed=1)
    assert tuple(map(stream.samples_after, stream.boundary_steps)) == stream.ends
    found = [stream.boundary(step) for step in range(len(stream) + 1)]
    assert [one for one in found if one is not None] == [
        Boundary(task, step) for task, step in enumerate(stream.boundary_steps)
    ]


@pytest.mark.parametrize("source", [Clear(3), Iid(3), Blurry(3, scale=7.0)])
def test_the_order_depends_on_the_seed_alone(source: Description) -> None:
    data = dataset(6, 60)
    first = source.open(data, 5).order
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    np.testing.assert_array_equal(first, source.open(data, 5).order)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]
    assert (first != source.open(data, 6).order).mean() > 0.5


def test_batches_are_unit_floats_in_new_memory() -> None:
    data = dataset(6, 300)
    stream = Clear(3).open(data, 0)
    batch = stream.batch(0)
    assert (batch.x.dtype, batch.y.dtype) == (torch.float32, torch.int64)
    assert batch.x.shape == (10, 1, 2, 2)
    assert batch.x.max() <= 1
    before = stream.batch(0).x.clone()
    batch.x.zero_()
    torch.testing.assert_close(stream.batch(0).x, before, rtol=0, atol=0)


def test_vectors_are_not_changed() -> None:
    vectors = np.array([[300.0, -1.0], [0.5, 2.0]], np.float32)
    data = Dataset.from_arrays(vectors, [0, 1], vectors, [0, 1])
    stream = Iid(1).open(data, 0)
    np.testing.assert_array_equal(stream.batch(0).x.numpy(), vectors[stream.order])


def test_a_memory_mapped_dataset_gives_an_equal_stream(tmp_path: Any) -> None:
    data = dataset(6, 60)
    np.save(tmp_path / "images.npy", data.train_images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    other = Dataset(
        "m", mapped, data.train_labels, mapped, data.train_labels, data.class_names, False
    )
    pairs = zip(batches(Clear(3).open(other, 0)), batches(Clear(3).open(data, 0)), strict=True)
    assert all(torch.equal(a.x, b.x) and torch.equal(a.y, b.y) for a, b in pairs)


def test_evaluations_are_the_test_images_of_each_task() -> None:
    data = dataset(6, 20)
    stream = Clear(3, label_order=(5, 0, 4, 1, 3, 2)).open(data, 0)
    found = [(e.name, e.classes, e.indices.tolist()) for e in stream.evaluations()]
    assert found == [
        ("task 1", (5, 0), [0, 5]),
        ("task 2", (4, 1), [1, 4]),
        ("task 3", (3, 2), [2, 3]),
    ]


@pytest.mark.parametrize("bins", [1, 7, 100])
def test_proportions_count_every_image_in_its_interval(bins: int) -> None:
    data = dataset(6, 60)
    stream = Clear(3).open(data, 0)
    counts = stream.proportions(bins)
    assert counts.shape == (bins, 6)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts.sum(0), np.bincount(data.train_labels))
    assert counts.sum(1).max() - counts.sum(1).min() <= 1
    first = stream.order[: counts.sum(1)[0]]
    np.testing.assert_array_equal(counts[0], np.bincount(data.train_labels[first], minlength=6))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"order": np.zeros(0, np.int64)}, "empty"),
        ({"order": np.array([0, 26])}, "within the 26 training images"),
        ({"order": np.array([-1, 2])}, "within the 26 training images"),
        ({"ends": (0, 4)}, "must increase"),
        ({"ends": (4, 4)}, "must increase"),
        ({"ends": (27,)}, "at most its 26 samples"),
    ],
)
def test_an_impossible_stream_raises(changes: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {"order": np.arange(26), "batch_size": 10, "ends": ()} | changes
    with pytest.raises(SteradError, match=message):
        Stream(dataset(6, 20), "mine", tasks=((0, 1, 2, 3, 4, 5),), **fields)


def test_positions_beyond_the_stream_raise() -> None:
    stream = Clear(1).open(dataset(6, 20), 0)
    for index in (-1, 3):
        with pytest.raises(SteradError, match="give 0 to 2"):
            stream.batch(index)
    with pytest.raises(SteradError, match="give 0 to 3"):
        stream.samples_after(4)


def test_streams_are_registered_by_name() -> None:
    assert (STREAMS["clear"], STREAMS["blurry"], STREAMS["iid"]) == (Clear, Blurry, Iid)


def test_the_hash_is_the_same_on_every_machine() -> None:
    big, little = np.arange(5, dtype=">i4"), np.arange(5, dtype="<i8")
    assert digest_of(big) == digest_of(little)
    bytes_hashed = bytes([2, 0, 0, 0, 0, 0, 0, 0, 0xC3, 0xA9])
    assert digest_of("é") == hashlib.sha256(bytes_hashed).hexdigest()


def test_everything_a_learner_receives_changes_the_hash() -> None:
    stream = Clear(tasks=5).open(Synthetic(per_class=10, image_size=1).load(), 0)
    other = stream.dataset.train_labels.copy()
    other[stream.order[0]] = (other[stream.order[0]] + 1) % 10
    changed = [
        dataclasses.replace(stream, order=np.roll(stream.order, 1)),
        dataclasses.replace(stream, batch_size=9),
        dataclasses.replace(stream, ends=stream.ends[:-1]),
        dataclasses.replace(stream, shifts=(Shift(0, Brightness(0.5)),)),
        dataclasses.replace(stream, shifts=(Shift(0, Brightness(0.25)),)),
        dataclasses.replace(
            stream, dataset=dataclasses.replace(stream.dataset, train_labels=other)
        ),
    ]
    assert len({one.digest for one in (stream, *changed)}) == 7
    assert dataclasses.replace(stream, name="mine", tasks=()).digest == stream.digest
