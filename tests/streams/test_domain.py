import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from sterad.data import Dataset, Synthetic
from sterad.errors import SteradError
from sterad.streams import Domain
from sterad.streams.batch import to_unit
from sterad.streams.domain import assign_domains, session_order, transformations

SESSIONS = """
5 4 2 8 9 6 11 1
9 4 1 6 2 8 5 11
6 5 9 4 11 1 8 2
11 4 5 6 2 9 8 1
6 2 8 4 1 11 5 9
"""
NUMBERS = np.array([1, 2, 4, 5, 6, 8, 9, 11])


def recorded(images: int = 400) -> Dataset:
    """Return images of 50 classes from the eight training sessions of CORe50."""
    rng = np.random.default_rng(0)
    labels = np.arange(images) % 50
    return Dataset(
        name="core50",
        train_images=rng.integers(0, 256, (images, 3, 4, 4), np.uint8),
        train_labels=labels,
        test_images=rng.integers(0, 256, (100, 3, 4, 4), np.uint8),
        test_labels=np.arange(100) % 50,
        class_names=tuple(f"o{number}" for number in range(50)),
        flip=True,
        domains=np.arange(images) * 8 // images,
        domain_names=tuple(f"s{number}" for number in NUMBERS),
    )


def test_sessions_come_in_the_published_order_of_each_seed() -> None:
    found = [session_order(NUMBERS, 50, seed).tolist() for seed in range(5)]
    assert found == [list(map(int, line.split())) for line in SESSIONS.strip().splitlines()]


def test_sessions_of_a_dataset_follow_one_another_shuffled_inside() -> None:
    data = recorded()
    assert data.domains is not None
    for seed in range(5):
        stream = Domain().open(data, seed)
        assert stream.ends == tuple(range(50, 401, 50))
        sessions = NUMBERS[data.domains[stream.order]].reshape(8, 50)
        assert (sessions == sessions[:, :1]).all()
        assert sessions[:, 0].tolist() == session_order(NUMBERS, 50, seed).tolist()
        assert (np.diff(stream.order[:50]) < 0).mean() > 0.3
        assert sorted(stream.order.tolist()) == list(range(400))
        assert len(stream.tasks) == 8


def test_sessions_have_one_evaluation_of_all_test_images() -> None:
    (one,) = Domain().open(recorded(), 0).evaluations()
    assert (one.transform, one.since, len(one.classes)) == (None, 0, 50)
    assert one.indices.tolist() == list(range(100))


@pytest.mark.parametrize("kind", ["rotation", "permutation", "brightness", "color"])
def test_each_domain_shows_its_images_under_its_transformation(kind: Any) -> None:
    data = recorded(93)
    stream = Domain(kind=kind, domains=4, batch_size=5).open(data, 7)
    raw = to_unit(torch.from_numpy(data.train_images[stream.order]))
    looks = transformations(kind, 4, 7)
    starts = [0, *stream.ends]
    expected = [look(raw[a:b]) for look, a, b in zip(looks, starts, starts[1:], strict=False)]
    shown = torch.cat([stream.batch(step).x for step in range(len(stream))])
    torch.testing.assert_close(shown, torch.cat(expected))
    assert [one.transform for one in stream.evaluations()] == list(looks)
    assert [one.since for one in stream.evaluations()] == [1, *(end + 1 for end in stream.ends[:3])]
    assert sorted(stream.order.tolist()) == list(range(93))


def test_without_announced_ends_batches_cross_domains_and_images_do_not() -> None:
    data = Synthetic(per_class=8).load()
    announced = Domain("brightness", 4, batch_size=9).open(data, 0)
    unannounced = Domain("brightness", 4, batch_size=9, announced=False).open(data, 0)
    assert unannounced.boundary_steps == ()
    assert (len(unannounced), len(announced)) == (9, 12)
    for step in range(len(unannounced)):
        assert torch.equal(unannounced.batch(step).x, unannounced.batch(step).x)
    images = [torch.cat([s.batch(i).x for i in range(len(s))]) for s in (announced, unannounced)]
    torch.testing.assert_close(images[0], images[1])


def test_a_batch_may_span_many_domains() -> None:
    data = Synthetic(per_class=2).load()
    stream = Domain("brightness", 10, batch_size=20, announced=False).open(data, 0)
    one_by_one = Domain("brightness", 10, batch_size=1, announced=False).open(data, 0)
    assert len(stream) == 1
    alone = torch.cat([one_by_one.batch(i).x for i in range(20)])
    torch.testing.assert_close(stream.batch(0).x, alone)


def test_whole_shows_every_image_in_every_domain() -> None:
    data = Synthetic(per_class=3).load()
    stream = Domain("rotation", 3, whole=True).open(data, 0)
    assert stream.ends == (30, 60, 90)
    for part in np.split(stream.order, 3):
        assert sorted(part.tolist()) == list(range(30))


def test_domains_get_equal_parts_of_each_class() -> None:
    labels = np.random.default_rng(0).integers(0, 6, 1000)
    domain = assign_domains(labels, 7, np.random.default_rng(1))
    assert np.ptp(np.bincount(domain)) <= 1
    table = np.bincount(domain * 6 + labels, minlength=42).reshape(7, 6)
    assert (np.ptp(table, axis=0) <= 1).all()


def test_permutations_depend_on_the_seed_and_the_first_is_the_identity() -> None:
    first, second = transformations("permutation", 3, 0), transformations("permutation", 3, 1)
    assert first[0] == second[0]
    assert len({*first, *second}) == 5
    assert transformations("permutation", 5, 0)[:3] == first


def test_vectors_can_be_permuted() -> None:
    vectors = np.random.default_rng(0).random((20, 6)).astype(np.float32)
    data = Dataset.from_arrays(vectors, [0, 1] * 10, vectors, [0, 1] * 10)
    stream = Domain("permutation", 2).open(data, 0)
    last = stream.batch(len(stream) - 1)
    np.testing.assert_array_equal(
        last.x.sort().values.numpy(), np.sort(vectors[stream.order[-len(last) :]])
    )


def test_a_dataset_without_sessions_is_rotated() -> None:
    stream = Domain().open(Synthetic(per_class=5).load(), 0)
    assert [plain.transform for plain in stream.shifts] == list(transformations("rotation", 5, 0))


@pytest.mark.parametrize(
    ("source", "data", "message"),
    [
        (Domain("sessions"), Synthetic(per_class=2).load(), "has no sessions"),
        (Domain("sessions", 3), recorded(), "has 8 sessions"),
        (Domain("sessions", whole=True), recorded(), "do not give domains or whole"),
        (Domain("color"), Synthetic(per_class=2).load(), "is gray"),
        (Domain("rotation", 21), Synthetic(per_class=2).load(), "20 images cannot fill 21"),
    ],
)
def test_impossible_domains_raise(source: Domain, data: Dataset, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        source.open(data, 0)


def test_zero_domains_raise() -> None:
    with pytest.raises(SteradError, match=r"^domains 0 is out of range: give an integer from 1 to"):
        Domain("rotation", 0)


def test_an_unknown_kind_raises() -> None:
    message = (
        "^kind 'moon' is unknown: choose sessions, rotation, permutation, brightness or color$"
    )
    with pytest.raises(SteradError, match=message):
        Domain("moon")  # type: ignore[arg-type]


def test_vectors_cannot_be_rotated() -> None:
    vectors = np.zeros((4, 6), np.float32)
    data = Dataset.from_arrays(vectors, [0, 1] * 2, vectors, [0, 1] * 2)
    with pytest.raises(SteradError, match="rotation needs images"):
        Domain("rotation", 2).open(data, 0)


def test_shifts_that_do_not_increase_raise() -> None:
    stream = Domain("brightness", 3).open(Synthetic(per_class=5).load(), 0)
    for shifts in (stream.shifts[1:], stream.shifts[::-1]):
        with pytest.raises(SteradError, match="must begin at 0"):
            dataclasses.replace(stream, shifts=shifts)
