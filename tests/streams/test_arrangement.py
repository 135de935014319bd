"""Properties of every registered stream on any dataset, and class imbalance."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sterad.data import Dataset, Synthetic
from sterad.errors import SteradError
from sterad.streams import (
    STREAMS,
    Batch,
    Blurry,
    Clear,
    Description,
    Domain,
    IBlurry,
    Iid,
    Linear,
    LongTail,
    SiBlurry,
    Stream,
)
from sterad.streams.arrangement import long_tail_counts, random_ranks

shares = st.floats(0, 100)
GOLDEN = {
    "blurry": "c6ce3aefd9d5",
    "clear": "7bcd5fbc8ab4",
    "domain": "6c887c0eb57a",
    "i-blurry": "795b6a68d255",
    "iid": "b834ef63dc3b",
    "linear": "d98b93a013d7",
    "long-tail": "8f2b05637f66",
    "si-blurry": "a3e931fe9c52",
}


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """Draw any number of classes with any number of images, at least one each."""
    classes = draw(st.integers(1, 12))
    counts = draw(st.lists(st.integers(1, 30), min_size=classes, max_size=classes))
    labels = np.repeat(np.arange(classes), counts)
    if draw(st.booleans()):
        np.random.default_rng(draw(st.integers(0, 9))).shuffle(labels)
    images = np.arange(4 * len(labels)).astype(np.uint8).reshape(-1, 1, 2, 2)
    return Dataset.from_arrays(images, labels, images, labels)


def divisor(draw: st.DrawFn, classes: int) -> int:
    return draw(st.sampled_from([k for k in range(1, classes + 1) if classes % k == 0]))


@st.composite
def permutations(draw: st.DrawFn, data: Dataset) -> Description:
    tasks, size = st.just(divisor(draw, data.classes)), st.integers(1, 40)
    sources: list[st.SearchStrategy[Description]] = [
        st.builds(Clear, tasks=tasks, batch_size=size),
        st.builds(Iid, tasks=tasks, batch_size=size),
        st.builds(Blurry, tasks=tasks, batch_size=size, scale=st.floats(1e-3, 1e6)),
        st.builds(Linear, tasks=tasks, batch_size=size, overlap=st.floats(0, 1)),
        st.builds(IBlurry, tasks=tasks, batch_size=size, disjoint=shares, blur=shares),
        st.builds(
            Domain,
            kind=st.sampled_from(["rotation", "permutation", "brightness"]),
            domains=st.integers(1, min(5, len(data.train_labels))),
            announced=st.booleans(),
            batch_size=size,
        ),
    ]
    source: Description = draw(st.one_of(sources))
    return source


@st.composite
def subsets(draw: st.DrawFn, data: Dataset) -> Description:
    si_blurry = st.builds(
        SiBlurry, tasks=st.integers(1, data.classes), disjoint=shares, blur=shares
    )
    long_tail = st.builds(
        LongTail,
        tasks=st.just(divisor(draw, data.classes)),
        imbalance=st.floats(1, 1e6),
        base=st.sampled_from(["clear", "blurry", "iid", "linear", "i-blurry", "si-blurry"]),
        scale=st.floats(1e-3, 1e6),
    )
    source: Description = draw(st.one_of(si_blurry, long_tail))
    return source


def shown(stream: Stream) -> list[Batch]:
    return [stream.batch(step) for step in range(len(stream))]


@settings(max_examples=150, deadline=None)
@given(st.data(), datasets(), st.integers(0, 2**32 - 1))
def test_permutations_show_every_image_once(draws: st.DataObject, data: Dataset, seed: int) -> None:
    stream = draws.draw(permutations(data)).open(data, seed)
    assert sorted(stream.order.tolist()) == list(range(len(data.train_labels)))
    labels = torch.cat([batch.y for batch in shown(stream)])
    assert labels.tolist() == data.train_labels[stream.order].tolist()
    assert stream.order.dtype == np.int64


@settings(max_examples=100, deadline=None)
@given(st.data(), datasets(), st.integers(0, 2**32 - 1))
def test_subsets_show_no_image_twice(draws: st.DataObject, data: Dataset, seed: int) -> None:
    stream = draws.draw(subsets(data)).open(data, seed)
    assert len(set(stream.order.tolist())) == stream.samples
    homes = [label for task in stream.tasks for label in task]
    assert len(homes) == len(set(homes))
    assert set(data.train_labels[stream.order].tolist()) == set(homes)


@settings(max_examples=80, deadline=None)
@given(st.data(), datasets(), st.integers(0, 100))
def test_equal_arguments_give_equal_streams_in_any_read_order(
    draws: st.DataObject, data: Dataset, seed: int
) -> None:
    source = draws.draw(st.one_of(permutations(data), subsets(data)))
    stream, again = source.open(data, seed), source.open(data, seed)
    assert stream.digest == again.digest
    whole = shown(stream)
    for at in draws.draw(st.permutations(range(len(whole)))):
        assert torch.equal(again.batch(at).x, whole[at].x)
        assert torch.equal(again.batch(at).y, whole[at].y)


def test_the_streams_of_the_package_are_all_tested() -> None:
    built_in = {
        name for name in STREAMS if STREAMS.qualified_name(name).startswith("sterad.streams.")
    }
    assert built_in == {*GOLDEN, "replay-file", "live"}


def three_hundred() -> Dataset:
    images, labels = np.zeros((300, 1, 4, 4), np.uint8), np.arange(300) % 10
    return Dataset.from_arrays(images, labels, images, labels)


def usual_fields(name: str) -> dict[str, Any]:
    known = STREAMS[name].__dataclass_fields__
    return {key: value for key, value in {"tasks": 5, "scale": 9.0}.items() if key in known}


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_every_stream_opens_by_name_with_the_defaults_of_a_dataset(name: str) -> None:
    data, usual = three_hundred(), usual_fields(name)
    one, other = (STREAMS[name](**usual).open(data, seed) for seed in (0, 1))
    assert one.digest != other.digest
    assert (STREAMS[name].__doc__ or "").partition("\n")[0].endswith(".")
    assert "\n" not in one.describe()
    assert one.digest[:12] in one.describe()
    assert "seed 1" in other.describe()
    assert "scale" not in usual or "scale 9" in one.describe()
    thinned = STREAMS[name](**usual | {"imbalance": 30.0}).open(data, 0)
    assert set(thinned.order) < set(one.order) or name == "long-tail"


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_the_stream_of_a_seed_never_changes(name: str) -> None:
    stream = STREAMS[name](**usual_fields(name)).open(three_hundred(), 0)
    assert stream.digest[:12] == GOLDEN[name]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            lambda: IBlurry(disjoint=101),
            "disjoint 101.0 is out of range: give a number in [0, 100]",
        ),
        (lambda: SiBlurry(blur=-1), "blur -1.0 is out of range: give a number in [0, 100]"),
        (lambda: SiBlurry(disjoint=-1), "disjoint -1.0 is out of range: give a number in [0, 100]"),
        (lambda: IBlurry(blur=100.5), "blur 100.5 is out of range: give a number in [0, 100]"),
        (lambda: Linear(overlap=1.5), "overlap 1.5 is out of range: give a number in [0, 1]"),
    ],
)
def test_shares_out_of_range_raise(source: Any, message: str) -> None:
    with pytest.raises(SteradError) as refused:
        source()
    assert str(refused.value) == message


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_fields_out_of_range_raise(name: str) -> None:
    known = STREAMS[name].__dataclass_fields__
    for field, value, wanted in (
        ("batch_size", 0, "an integer from 1 to 100,000"),
        ("imbalance", 0.5, "a number in [1, 1e+06]"),
        ("tasks", 0, "an integer from 1 to 1,000,000"),
        ("scale", 0.0, "a number in (0, 1e+09]"),
    ):
        if field in known:
            with pytest.raises(SteradError) as refused:
                STREAMS[name](**{field: value})
            assert str(refused.value) == f"{field} {value} is out of range: give {wanted}"


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 99))
def test_ranks_of_a_class_are_consecutive(labels: list[int], seed: int) -> None:
    array = np.array(labels, dtype=np.int64)
    ranks = random_ranks(array, np.random.default_rng(seed))
    for label in set(labels):
        assert sorted(ranks[array == label]) == list(range(labels.count(label)))


def test_every_image_has_rank_0_equally_often() -> None:
    rng, labels = np.random.default_rng(0), np.array([0, 1, 0, 1, 0])
    first = sum(random_ranks(labels, rng) == 0 for _ in range(3000)) / 3000
    np.testing.assert_allclose(first, [1 / 3, 1 / 2, 1 / 3, 1 / 2, 1 / 3], atol=0.04)


def test_the_tail_is_exponential_and_keeps_one_of_each_class() -> None:
    counts = long_tail_counts(np.full(10, 500), 100.0, np.random.default_rng(0))
    expected = [round(500 * 100 ** (-rank / 9)) for rank in range(10)]
    assert sorted(counts.tolist(), reverse=True) == expected
    assert long_tail_counts(np.array([3, 0, 2]), 1e9, np.random.default_rng(0)).tolist() in (
        [3, 0, 1],
        [1, 0, 2],
    )
    assert long_tail_counts(np.array([7, 9]), 1.0, np.random.default_rng(0)).tolist() == [7, 9]


@pytest.mark.parametrize("source", [Clear(tasks=5), Blurry(tasks=5, scale=30.0)])
def test_imbalance_keeps_the_order_of_the_stream(source: Clear | Blurry) -> None:
    data = Synthetic(per_class=50, image_size=1).load()
    whole = source.open(data, 2)
    thin = dataclasses.replace(source, imbalance=20.0).open(data, 2)
    stays = np.isin(whole.order, thin.order)
    assert whole.order[stays].tolist() == thin.order.tolist()
    assert len(thin.ends) == len(whole.ends)
    for before, after in zip(whole.ends, thin.ends, strict=True):
        assert stays[:before].sum() == after


def test_imbalance_keeps_domains_and_evaluations() -> None:
    data = Synthetic(per_class=50).load()
    thin = Domain(kind="brightness", domains=3, imbalance=10).open(data, 0)
    assert thin.ends[-1] == thin.samples < 500
    assert [one.start for one in thin.shifts] == [0, *thin.ends[:-1]]
    assert [one.since for one in thin.evaluations()] == [1, *(end + 1 for end in thin.ends[:-1])]


def test_an_empty_domain_raises() -> None:
    data = Synthetic(classes=2, per_class=4).load()
    with pytest.raises(SteradError, match="leaves a task or domain"):
        Domain(kind="brightness", domains=8, imbalance=4).open(data, 0)


@pytest.mark.parametrize("imbalance", [0.5, -1.0, float("inf"), float("nan")])
def test_an_impossible_imbalance_raises(imbalance: float) -> None:
    message = rf"^imbalance {imbalance} is out of range: give a number in \[1, 1e\+06\]$"
    with pytest.raises(SteradError, match=message):
        Clear(tasks=5, imbalance=imbalance)
