import io
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sterad.errors import SteradError
from sterad.memory import MEMORIES, Memory, Reservoir
from sterad.streams import Batch


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbered(start: int, n: int) -> Batch:
    """Return vectors and labels that are the numbers of the samples."""
    number = torch.arange(start, start + n)
    return Batch(number[:, None].float(), number, {"twice": 2 * number})


def held(memory: Memory) -> list[int]:
    return [label for batch in memory.everything() for label in batch.y.tolist()]


def fed(memory: Reservoir, sizes: list[int]) -> Reservoir:
    for size in sizes:
        memory.update(numbered(memory.seen, size))
    return memory


def reference(capacity: int, samples: int, generator: torch.Generator) -> list[int]:
    slots: dict[int, int] = {}
    n_added = 0
    for n_seen in range(samples):
        j = int(torch.rand(1, generator=generator, dtype=torch.float64).item() * (n_seen + 1))
        if n_seen < capacity:
            j = n_added
        if j < capacity:
            slots[j] = n_seen
            n_added += 1
    return [slots[j] for j in sorted(slots)]


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 30), st.lists(st.integers(0, 40), max_size=8), st.integers(0, 99))
def test_batch_updates_equal_algorithm_r_by_sample(
    capacity: int, sizes: list[int], seed: int
) -> None:
    memory = fed(Reservoir(capacity, rng(seed)), sizes)
    assert held(memory) == reference(capacity, sum(sizes), rng(seed))
    assert memory.seen == sum(sizes)
    assert len(memory) == min(capacity, sum(sizes))
    for batch in memory.everything(7):
        assert batch.x[:, 0].tolist() == batch.y.tolist()
        assert batch.extra["twice"].tolist() == (2 * batch.y).tolist()


def test_every_sample_is_stored_with_the_same_probability() -> None:
    generator, counts = rng(1), np.zeros(40)
    for _ in range(1500):
        counts[held(fed(Reservoir(10, generator), [7, 13, 20]))] += 1
    assert counts.sum() == 15_000
    # The number of stored samples is fixed, so the counts vary less than multinomial ones.
    expected = 1500 * 10 / 40
    statistic = ((counts - expected) ** 2 / (expected * (1 - 10 / 40))).sum() * 39 / 40
    assert 0.001 < stats.chi2(39).cdf(statistic) < 0.999


def test_sampling_more_than_stored_returns_all_in_storage_order() -> None:
    memory = fed(Reservoir(10, rng()), [6])
    state = memory.state_dict()["rng"]
    assert memory.sample(7).y.tolist() == list(range(6))
    assert torch.equal(memory.state_dict()["rng"], state)
    assert len(fed(memory, [20]).sample(11)) == 10


def test_samples_are_distinct_uniform_and_keep_their_columns_together() -> None:
    memory, counts = fed(Reservoir(12, rng()), [12]), np.zeros(12)
    for _ in range(2000):
        batch = memory.sample(5)
        assert len(set(batch.y.tolist())) == 5
        assert batch.extra["twice"].tolist() == (2 * batch.y).tolist()
        counts[batch.y.numpy()] += 1
    expected = 2000 * 5 / 12
    statistic = ((counts - expected) ** 2 / (expected * (1 - 5 / 12))).sum() * 11 / 12
    assert stats.chi2(11).cdf(statistic) < 0.999


def test_sampling_exactly_all_shuffles() -> None:
    drawn = fed(Reservoir(50, rng()), [50]).sample(50).y.tolist()
    assert sorted(drawn) == list(range(50))
    assert drawn != sorted(drawn)


def test_an_empty_memory_gives_an_empty_batch() -> None:
    memory = Reservoir(5, rng())
    assert (len(memory), memory.sample(3).x.shape, len(memory.sample(0))) == (0, (0,), 0)
    assert list(memory.everything()) == []
    assert memory.class_counts(3).tolist() == [0, 0, 0]
    memory.update(memory.sample(3))
    assert memory.seen == 0


def test_class_counts_count_the_stored_samples() -> None:
    memory = Reservoir(6, rng())
    memory.update(Batch(torch.zeros(5, 2), torch.tensor([0, 2, 2, 0, 2])))
    counts = memory.class_counts(4)
    assert counts.dtype == torch.int64
    assert counts.tolist() == [2, 0, 3, 0]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.lists(st.integers(1, 15), min_size=2, max_size=8), st.data())
def test_a_restored_memory_gives_equal_results(
    capacity: int, sizes: list[int], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(sizes)))
    whole = fed(Reservoir(capacity, rng(3)), sizes[:cut])
    whole.sample(4)
    file = io.BytesIO()
    torch.save(whole.state_dict(), file)
    file.seek(0)
    resumed = Reservoir(capacity, rng(9))
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for memory in (whole, resumed):
        fed(memory, sizes[cut:])
    assert held(whole) == held(resumed)
    assert whole.sample(3).y.tolist() == resumed.sample(3).y.tolist()
    assert torch.equal(whole.state_dict()["rng"], resumed.state_dict()["rng"])


def test_a_saved_state_is_a_trimmed_copy() -> None:
    memory = fed(Reservoir(1000, rng()), [7])
    state = memory.state_dict()
    assert state["columns"]["x"].untyped_storage().nbytes() == 7 * 4
    fed(memory, [2000])
    assert state["columns"]["y"].tolist() == list(range(7))
    assert state["seen"] == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacity": 6}, "saved memory has capacity 6 and this one 5"),
        ({"seen": 2}, "does not hold 2 samples"),
        ({"columns": {}}, "does not hold 5 samples"),
        ({"rng": None}, "lacks rng"),
    ],
)
def test_a_foreign_state_raises_and_changes_nothing(changes: dict[str, Any], message: str) -> None:
    memory = fed(Reservoir(5, rng()), [9])
    before = held(memory)
    state = {k: v for k, v in (memory.state_dict() | changes).items() if v is not None}
    with pytest.raises(SteradError, match=message):
        memory.load_state_dict(state)
    assert held(memory) == before


def test_a_rejected_batch_changes_nothing() -> None:
    memory = fed(Reservoir(5, rng()), [3])
    state = memory.state_dict()["rng"]
    with pytest.raises(SteradError, match="same columns"):
        memory.update(Batch(torch.zeros(2, 1), torch.zeros(2).long()))
    assert memory.seen == 3
    assert torch.equal(memory.state_dict()["rng"], state)


def test_impossible_numbers_raise() -> None:
    with pytest.raises(SteradError, match=r"memory 0 .*finetune"):
        Reservoir(0, rng())
    with pytest.raises(SteradError, match="-1 samples"):
        Reservoir(1, rng()).sample(-1)


def test_reservoir_is_registered_and_is_a_memory() -> None:
    memory: Memory = MEMORIES["reservoir"](3, rng())
    assert isinstance(memory, Reservoir)
    assert memory.capacity == 3
