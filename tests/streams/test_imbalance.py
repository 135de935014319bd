import dataclasses

import numpy as np
import pytest

from sterad.data import Synthetic
from sterad.errors import SteradError
from sterad.streams import Blurry, Clear, Domain
from sterad.streams.imbalance import long_tail


def test_the_tail_is_exponential_and_keeps_one_of_each_class() -> None:
    counts = long_tail(np.full(10, 500), 100.0, np.random.default_rng(0))
    expected = [round(500 * 100 ** (-rank / 9)) for rank in range(10)]
    assert sorted(counts.tolist(), reverse=True) == expected
    assert long_tail(np.array([3, 0, 2]), 1e9, np.random.default_rng(0)).tolist() in (
        [3, 0, 1],
        [1, 0, 2],
    )
    assert long_tail(np.array([7, 9]), 1.0, np.random.default_rng(0)).tolist() == [7, 9]


@pytest.mark.parametrize("source", [Clear(tasks=5), Blurry(tasks=5, scale=30.0)])
def test_the_thinned_stream_is_the_whole_one_with_gaps(source: Clear | Blurry) -> None:
    data = Synthetic(per_class=50, image_size=1).load()
    whole = source.open(data, 2)
    thin = dataclasses.replace(source, imbalance=20.0).open(data, 2)
    stays = np.isin(whole.order, thin.order)
    assert whole.order[stays].tolist() == thin.order.tolist()
    assert len(thin.ends) == len(whole.ends)
    for before, after in zip(whole.ends, thin.ends, strict=True):
        assert stays[:before].sum() == after


def test_domains_keep_their_transformations_and_times() -> None:
    data = Synthetic(per_class=50).load()
    thin = Domain(kind="brightness", domains=3, imbalance=10).open(data, 0)
    assert thin.ends[-1] == thin.samples < 500
    assert [one.start for one in thin.shifts] == [0, *thin.ends[:-1]]
    assert [one.since for one in thin.evaluations()] == [1, *(end + 1 for end in thin.ends[:-1])]


def test_a_domain_that_loses_everything_gets_a_sentence() -> None:
    data = Synthetic(classes=2, per_class=4).load()
    with pytest.raises(SteradError, match="leaves a task or domain"):
        Domain(kind="brightness", domains=8, imbalance=4).open(data, 0)


@pytest.mark.parametrize("imbalance", [0.5, -1.0, float("inf"), float("nan")])
def test_an_impossible_imbalance_gets_a_sentence(imbalance: float) -> None:
    told = rf"^imbalance {imbalance} is out of range: give a number in \[1, 1e\+06\]$"
    with pytest.raises(SteradError, match=told):
        Clear(tasks=5, imbalance=imbalance)
    with pytest.raises(SteradError, match=f"^imbalance {imbalance} is below 1 or endless"):
        long_tail(np.array([3, 2]), imbalance, np.random.default_rng(0))
