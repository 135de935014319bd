import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sterad.streams.ranks import random_ranks


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 99))
def test_each_class_is_counted_through(labels: list[int], seed: int) -> None:
    array = np.array(labels, dtype=np.int64)
    ranks = random_ranks(array, np.random.default_rng(seed))
    for label in set(labels):
        assert sorted(ranks[array == label]) == list(range(labels.count(label)))


def test_every_image_is_first_equally_often() -> None:
    rng, labels = np.random.default_rng(0), np.array([0, 1, 0, 1, 0])
    first = sum(random_ranks(labels, rng) == 0 for _ in range(3000)) / 3000
    np.testing.assert_allclose(first, [1 / 3, 1 / 2, 1 / 3, 1 / 2, 1 / 3], atol=0.04)
