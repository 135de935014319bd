"""One thread a worker: the tests share the cores, and waiting threads cost more than they give."""

import os
import shutil
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture
def _torch_as_it_was() -> Iterator[None]:
    """Undo what compiling does: torch stops checking what laws are given, everywhere."""
    import torch._dynamo.utils
    from torch.distributions import Distribution

    before = Distribution._validate_args
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    Distribution.set_default_validate_args(before)


@pytest.fixture
def _compiler(_torch_as_it_was: None) -> None:
    """Let a test compile, if that can be done here."""
    if not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("torch.compile needs a C++ compiler and none is installed")
