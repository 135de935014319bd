"""check_memory: the contract of a memory policy, to run on your own ones too."""

import io

import torch

from sterad.memory import MEMORIES, Everything, Memory
from sterad.streams import Batch

CAPACITY, CLASSES, BATCHES = 12, 4, 9


def check_memory(policy: str) -> None:
    """Run all checks on a registered memory policy; an AssertionError names the one that fails."""
    check_capacity(policy)
    check_samples(policy)
    check_round_trip(policy)


def check_capacity(policy: str) -> None:
    """Offer more samples than fit: the memory stays within its capacity and stores none twice."""
    memory, offered = _make(policy), 0
    for batch in _batches():
        before = batch.x.clone()
        memory.update(batch)
        offered += len(batch)
        assert torch.equal(batch.x, before), "update changed the batch"
        stored = _stored(memory)
        assert len(memory) == len(stored), f"len is {len(memory)} and {len(stored)} are stored"
        # The memory of joint training has no limit.
        is_within = len(stored) <= CAPACITY or isinstance(memory, Everything)
        assert is_within, f"the memory holds {len(stored)} samples, more than {CAPACITY}"
        assert len(set(stored)) == len(stored), "a sample is stored twice"
        assert all(number < offered for number in stored), "a sample was never offered"
        assert memory.class_counts(CLASSES).sum() == len(memory), "class_counts do not add up"


def check_samples(policy: str) -> None:
    """Sample: as many distinct stored samples as asked for, or all of them if there are fewer."""
    memory = _make(policy)
    for batch in _batches():
        memory.update(batch)
        for n in (0, 1, 5, 100):
            numbers = _numbers(memory.sample(n))
            assert len(numbers) == min(n, len(memory)), f"sample({n}) returned {len(numbers)}"
            assert len(set(numbers)) == len(numbers), "sample returned a sample twice"
            assert set(numbers) <= set(_stored(memory)), "sample returned what is not stored"


def check_round_trip(policy: str) -> None:
    """Save, load into a new memory and continue: the same samples are stored and drawn."""
    whole, saved = _make(policy), _make(policy)
    batches = _batches()
    for batch in batches[:5]:
        whole.update(batch)
        saved.update(batch)
    file = io.BytesIO()
    torch.save(saved.state_dict(), file)
    file.seek(0)
    resumed = _make(policy, seed=1)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for batch in batches[5:]:
        whole.update(batch)
        resumed.update(batch)
        same = _stored(whole) == _stored(resumed)
        assert same, "a loaded memory stores other samples: save your attributes in state_dict()"
        same = _numbers(whole.sample(3)) == _numbers(resumed.sample(3))
        assert same, "a loaded memory draws other samples: keep the generator in state_dict()"


def _make(policy: str, seed: int = 0) -> Memory:
    return MEMORIES[policy](CAPACITY, torch.Generator().manual_seed(seed))


def _batches() -> list[Batch]:
    """Return batches of 4 images that hold their number in the stream as pixel values."""
    numbers = torch.arange(4 * BATCHES).float().view(BATCHES, 4)
    labels = (torch.arange(4 * BATCHES) // 10 % CLASSES).view(BATCHES, 4)
    return [
        Batch((row / 255).view(4, 1, 1, 1).expand(4, 1, 2, 2).clone(), y)
        for row, y in zip(numbers, labels, strict=True)
    ]


def _numbers(batch: Batch) -> list[int]:
    return [round(255 * value) for value in batch.x.flatten(1)[:, 0].tolist()] if len(batch) else []


def _stored(memory: Memory) -> list[int]:
    return [number for batch in memory.everything(5) for number in _numbers(batch)]
