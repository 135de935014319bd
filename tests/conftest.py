"""One thread per worker: the tests share the cores."""

import multiprocessing
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError

MAX_NEW_BYTES = 1 << 29
"""Address space that a reader may use for a hostile file."""
MAX_SECONDS = 20.0

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


@pytest.fixture
def error_within_limits() -> Callable[[Callable[[], object]], str]:
    """Return a function that calls a reader in a process with limits and returns its error.

    The error must be a SteradError that was raised before memory ran out, and in time.
    """
    context = multiprocessing.get_context("fork")

    def call(reader: Callable[[], object], sender: Any) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MAX_NEW_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            reader()
        except SteradError as error:
            sender.send((str(error), isinstance(error.__cause__, MemoryError)))
        except BaseException as error:
            sender.send((repr(error), True))
        os._exit(0)

    def run(reader: Callable[[], object]) -> str:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=call, args=(reader, sender))
        process.start()
        is_done = receiver.poll(MAX_SECONDS)
        process.kill()
        process.join()
        assert is_done, "the reader did not end in time"
        message, is_out_of_memory = receiver.recv()
        assert not is_out_of_memory, message
        return str(message)

    return run
