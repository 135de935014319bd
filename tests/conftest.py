"""One thread per worker: the tests share the cores."""

import os
import shutil
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture
def _restore_torch() -> Iterator[None]:
    """Restore the validation of distributions, which compiling switches off."""
    import torch._dynamo.utils
    from torch.distributions import Distribution

    before = Distribution._validate_args
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    Distribution.set_default_validate_args(before)


@pytest.fixture
def _compiler(_restore_torch: None) -> None:
    """Skip a test that compiles if there is no C++ compiler."""
    if not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("torch.compile needs a C++ compiler and none is installed")
