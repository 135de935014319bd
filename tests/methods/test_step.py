"""One step of each method, by what it asks of torch: no timing, so it cannot flake.

The committed table says how many operations a step takes, how many multiplications they hold and
how many bytes they write. After a change that is meant, write it anew with
`python tests/methods/test_step.py`, and read its difference.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from sterad.engine import Execution
from sterad.methods import METHODS, Learner, Problem
from sterad.methods.from_scratch import FromScratch
from sterad.streams import Batch, Boundary

TABLE = Path(__file__).with_name("step.json")
WAITING = ("_local_scalar_dense", "item", "is_nonzero", "equal")
"""Operations that make a device wait until the host has a number."""


def subject(name: str, device: str = "cpu") -> Learner:
    """Return a method with a memory that is full."""
    kind = METHODS[name]
    problem = Problem(
        (3, 16, 16), 10, memory=150, flip=True, width=8, announced=True, execution=Execution(device)
    )
    learner = kind(kind.Config(), problem)
    learner.observe(batch(150))
    learner.boundary(Boundary(task=0, step=1))
    learner.observe(batch())  # some learn only once there is a memory, and build parts then
    return learner


def batch(images: int = 10) -> Batch:
    rng = torch.Generator().manual_seed(images)
    x = torch.randint(0, 256, (images, 3, 16, 16), generator=rng) / 255
    return Batch(x, torch.arange(images) % 10)


class Asked(TorchDispatchMode):
    """Counts operations and the bytes of what they newly make."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = Counter[str]()
        self.bytes = 0
        self.moves: list[bool] = []
        """Of each copy to another device, whether the host goes on meanwhile."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ == "_to_copy" and args[0].device != out.device:
            self.moves.append((kwargs or {}).get("non_blocking", False))
        self.operations[func.overloadpacket.__name__] += 1
        given = {storage.data_ptr() for storage in _storages((args, kwargs))}
        made = {one.data_ptr(): one.nbytes() for one in _storages(out)}
        self.bytes += sum(size for place, size in made.items() if place not in given)
        return out


def _storages(values: Any) -> list[torch.UntypedStorage]:
    leaves = tree_leaves(values)
    return [one.untyped_storage() for one in leaves if isinstance(one, torch.Tensor)]


def step(name: str) -> tuple[Asked, int]:
    """Return what one step asked for, and its multiplications."""
    torch.set_num_threads(1)
    learner, asked = subject(name), Asked()
    multiplications = FlopCounterMode(display=False)
    with multiplications, asked:
        learner.observe(batch())
    return asked, multiplications.get_total_flops() // 2


def row(name: str) -> dict[str, int]:
    """Return a row of the table."""
    asked, multiplications = step(name)
    return {
        "operations": sum(asked.operations.values()),
        "multiplications": multiplications,
        "bytes": asked.bytes,
    }


@pytest.mark.parametrize("name", list(METHODS))
def test_a_step_asks_for_no_more_than_the_table_says(name: str) -> None:
    assert row(name) == json.loads(TABLE.read_text())[name]


@pytest.mark.parametrize("name", list(METHODS))
def test_no_number_leaves_the_device_within_a_step(name: str) -> None:
    asked, _ = step(name)
    assert not [one for one in WAITING if asked.operations[one]]
    # The meta device has no numbers: whoever asked for one would hear so.
    learner = subject(name, device="meta")
    with Asked() as moved:
        learner.observe(batch())
    assert not any(moved.moves), "only copies from pinned memory to CUDA may go on unawaited"
    assert moved.moves or issubclass(METHODS[name], FromScratch)


def test_methods_that_train_when_they_answer_take_no_step() -> None:
    for name in METHODS:
        if issubclass(METHODS[name], FromScratch):
            assert json.loads(TABLE.read_text())[name]["multiplications"] == 0


if __name__ == "__main__":
    TABLE.write_text(json.dumps({name: row(name) for name in METHODS}, indent=1) + "\n")
