"""Neither memory nor the work per step grows over a stream of 100,000 images."""

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig
from sterad.experiments.run import prepare
from sterad.experiments.session import Session

MIB = 2**20


class OperationCounter(TorchDispatchMode):
    """Counts the operations of torch."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.operations += 1
        return func(*args, **(kwargs or {}))


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def train_until(session: Session, stop: int) -> None:
    while session.step < stop:
        session.learn(session.stream.batch(session.step))


def operations_of_a_step(session: Session) -> int:
    counter = OperationCounter()
    with counter:
        train_until(session, session.step + 1)
    return counter.operations


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="resident size is read from /proc"
)
@pytest.mark.slow
@pytest.mark.parametrize("method", ["agd-fd", "finetune"])
def test_memory_and_work_are_constant_over_100_000_images(method: str) -> None:
    fields: dict[str, Any] = {"views": 1, "projection": 16} if method == "agd-fd" else {}
    config = RunConfig.of(
        method=method,
        dataset="synthetic",
        per_class=10_000,
        stream="blurry",
        encoder="mlp",
        width=2,
        augmentation="none",
        memory_batch=16,
        memory=500,
        batch_size=20,
        **fields,
    )
    execution = Execution(threads=1)
    execution.apply()
    session = prepare(config, execution)
    assert session.stream.samples == 100_000
    train_until(session, 500)
    early, early_work = resident_bytes(), operations_of_a_step(session)
    train_until(session, len(session.stream) - 1)
    grown = resident_bytes() - early
    assert grown < 4 * MIB, f"resident memory grew by {grown / MIB:.1f} MiB over the stream"
    # A step in which the memory stores no image has a few operations less.
    assert operations_of_a_step(session) <= early_work
