import dataclasses

import numpy as np
import pytest

from sterad.data import Synthetic
from sterad.errors import SteradError
from sterad.streams import Blurry, Clear, Domain, LongTail
from sterad.streams.description import long_tail_counts


def test_long_tail_equals_its_base_with_imbalance() -> None:
    data = Synthetic(per_class=40, image_size=1).load()
    assert LongTail(tasks=5).open(data, 1).digest == Clear(5, imbalance=100).open(data, 1).digest
    tail = LongTail(tasks=5, base="blurry", scale=9.0, imbalance=5, batch_size=3)
    same = Blurry(tasks=5, scale=9.0, imbalance=5, batch_size=3)
    assert tail.open(data, 1).digest == same.open(data, 1).digest
    assert "long-tail blurry" in tail.open(data, 1).describe()


def test_imbalance_is_the_ratio_of_class_counts() -> None:
    stream = LongTail(tasks=5).open(Synthetic(per_class=200, image_size=1).load(), 0)
    counts = np.sort(np.bincount(stream.dataset.train_labels[stream.order]))
    assert (counts[0], counts[-1]) == (2, 200)


@pytest.mark.parametrize(
    ("base", "message"), [("long-tail", "a long tail itself"), ("bluury", "bluury")]
)
def test_an_invalid_base_raises(base: str, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        LongTail(tasks=5, base=base).open(Synthetic(per_class=2).load(), 0)


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
    with pytest.raises(SteradError, match=f"^imbalance {imbalance} must be a finite number"):
        long_tail_counts(np.array([3, 2]), imbalance, np.random.default_rng(0))
