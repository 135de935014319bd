"""The work of one step of each method, counted instead of timed, so that the test is stable.

step.json has the operations of a step, their multiplications and the bytes that they allocate.
After an intended change, write it again with `python tests/methods/test_step.py` and review the
difference.
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
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.methods.base.from_scratch import FromScratch
from sterad.streams import Batch, Boundary

TABLE = Path(__file__).with_name("step.json")
SLOW = ("ccl-dc", "ocm", "onpro")
"""Methods whose steps have more than a thousand images."""
EACH_METHOD = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in METHODS
]
SYNCHRONIZING = ("_local_scalar_dense", "item", "is_nonzero", "equal")
"""Operations that copy a number from the device to the host."""
TOLERANCES = {"operations": 1.05, "multiplications": 1.0, "bytes": 1.02}
"""Allowed factors above the table, which is from torch 2.13: 2.6 decomposes some operations."""


def build_with_full_memory(name: str, device: str = "cpu") -> Learner:
    """Return a learner in its second task, with a full memory."""
    cls = METHODS[name]
    problem = Problem(
        input_shape=(3, 16, 16),
        classes=10,
        memory=150,
        flip=True,
        encoder=cls.default_encoder,
        width=8,
        announced=True,
        execution=Execution(device),
    )
    learner = build_learner(cls, cls.Config(), problem)
    learner.observe(make_batch(150))
    learner.boundary(Boundary(task=0, step=1))
    learner.observe(make_batch())  # the first step with a memory allocates more
    return learner


def make_batch(images: int = 10) -> Batch:
    rng = torch.Generator().manual_seed(images)
    x = torch.randint(0, 256, (images, 3, 16, 16), generator=rng) / 255
    return Batch(x, torch.arange(images) % 10)


class OperationCounter(TorchDispatchMode):
    """Counts operations and the bytes of the tensors that they allocate."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = Counter[str]()
        self.bytes = 0
        self.copies: list[bool] = []
        """Whether each copy to another device is asynchronous."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ == "_to_copy" and args[0].device != out.device:
            self.copies.append((kwargs or {}).get("non_blocking", False))
        self.operations[func.overloadpacket.__name__] += 1
        inputs = {storage.data_ptr() for storage in _storages((args, kwargs))}
        outputs = {storage.data_ptr(): storage.nbytes() for storage in _storages(out)}
        self.bytes += sum(size for pointer, size in outputs.items() if pointer not in inputs)
        return out


def _storages(values: Any) -> list[torch.UntypedStorage]:
    leaves = tree_leaves(values)
    return [leaf.untyped_storage() for leaf in leaves if isinstance(leaf, torch.Tensor)]


def count_step(name: str) -> tuple[OperationCounter, int]:
    """Return the operations of one step and its number of multiplications."""
    torch.set_num_threads(1)
    learner, counter = build_with_full_memory(name), OperationCounter()
    multiplications = FlopCounterMode(display=False)
    with multiplications, counter:
        learner.observe(make_batch())
    return counter, multiplications.get_total_flops() // 2


def row_of(counter: OperationCounter, multiplications: int) -> dict[str, int]:
    """Return the row of a method in step.json."""
    return {
        "operations": sum(counter.operations.values()),
        "multiplications": multiplications,
        "bytes": counter.bytes,
    }


@pytest.mark.parametrize("name", EACH_METHOD)
def test_a_step_takes_no_more_work_than_the_table_and_does_not_synchronize(name: str) -> None:
    counter, multiplications = count_step(name)
    measured, limit = row_of(counter, multiplications), json.loads(TABLE.read_text())[name]
    for quantity, tolerance in TOLERANCES.items():
        assert measured[quantity] <= tolerance * limit[quantity], quantity
    assert not [name for name in SYNCHRONIZING if counter.operations[name]]
    # Tensors on the meta device have no values: a synchronization raises.
    learner = build_with_full_memory(name, device="meta")
    with OperationCounter() as counter:
        learner.observe(make_batch())
    assert not any(counter.copies), "only copies from pinned memory to CUDA may be asynchronous"
    assert counter.copies or issubclass(METHODS[name], FromScratch)


def test_methods_that_train_from_scratch_take_no_step() -> None:
    for name in METHODS:
        if issubclass(METHODS[name], FromScratch):
            assert json.loads(TABLE.read_text())[name]["multiplications"] == 0


if __name__ == "__main__":
    rows = {name: row_of(*count_step(name)) for name in METHODS}
    TABLE.write_text(json.dumps(rows, indent=1) + "\n")
