import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sterad.memory.memory import draw_distinct


@given(st.integers(0, 60), st.integers(0, 400), st.integers(0, 100))
def test_numbers_are_distinct_and_in_range(n: int, more: int, seed: int) -> None:
    drawn = draw_distinct(n, n + more, torch.Generator().manual_seed(seed)).tolist()
    assert len(drawn) == len(set(drawn)) == n
    assert all(0 <= one < n + more for one in drawn)


@pytest.mark.parametrize("below", [5, 12])  # by permutation, by discarding repeats
def test_every_ordered_pair_is_equally_likely(below: int) -> None:
    rng, pairs = torch.Generator().manual_seed(0), np.zeros((below, below), int)
    for _ in range(20_000):
        one, two = draw_distinct(2, below, rng).tolist()
        pairs[one, two] += 1
    assert not np.diagonal(pairs).any()
    assert stats.chisquare(pairs[~np.eye(below, dtype=bool)]).pvalue > 1e-3


def test_the_cost_does_not_depend_on_the_range() -> None:
    rng = torch.Generator().manual_seed(0)
    with torch.profiler.profile(profile_memory=True) as profile:
        drawn = draw_distinct(64, 10**12, rng)  # a permutation would not fit into memory
    assert len(drawn) == 64
    assert sum(max(0, event.self_cpu_memory_usage) for event in profile.key_averages()) < 10_000
