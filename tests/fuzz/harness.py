"""Read mutated files: the content is right, or an error names the file; nothing else happens."""

import contextlib
import os
import random
import resource
import signal
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from sterad.errors import SteradError
from tests.fuzz.mutations import Mutation

CASES = int(os.environ.get("STERAD_FUZZ_CASES", "200"))
SEED = int(os.environ.get("STERAD_FUZZ_SEED", "0"))
FIRST_CASE = int(os.environ.get("STERAD_FUZZ_FIRST", "0"))
MAX_SECONDS = 10.0
"""Time for one case; a reader that needs more hangs."""
MAX_SAVED_FAILURES = 20
"""Failures of one reader whose files are saved."""
MAX_BYTES = 1 << 30
"""Address space that a reader may use beyond what the process has when the cases start."""


class TimeLimitError(BaseException):
    """A case took too long; not an Exception, so that no reader turns it into its own error."""


@dataclass(frozen=True)
class Reader:
    """A reader of one kind of file."""

    name: str
    write: Callable[[Path], Path]
    """Writes a valid file, and what belongs to it, into an empty folder; returns the file."""
    read: Callable[[Path], Any]
    """Reads the file and returns content that can be compared."""
    mutations: tuple[Mutation, ...]
    unverified: tuple[Mutation, ...] = ()
    """Mutations that may give other valid content: behind a hash that is computed again, and of
    formats that have no checksum."""


@dataclass
class Case:
    """One mutated file."""

    reader: Reader
    number: int

    def mutate(self, content: bytes) -> tuple[bytes, bool]:
        """Return the mutated content, and whether other valid content may be read from it."""
        rng = random.Random(f"{SEED} {self.reader.name} {self.number}")
        mutation = rng.choice((*self.reader.mutations, *self.reader.unverified))
        return mutation(content, rng), mutation in self.reader.unverified

    def describe(self, problem: str, content: bytes) -> str:
        """Save the file and return the problem with the command that repeats it."""
        folder = Path(tempfile.mkdtemp(prefix="sterad-fuzz-"))
        (folder / "content").write_bytes(content)
        return (
            f"{self.reader.name}, seed {SEED}, case {self.number}: {problem}\n"
            f"  saved as {folder / 'content'}; repeat: STERAD_FUZZ_SEED={SEED} STERAD_FUZZ_CASES=1 "
            f"STERAD_FUZZ_FIRST={self.number} pytest tests/fuzz -k {self.reader.name!r}"
        )


def run_cases(reader: Reader, folder: Path) -> tuple[Counter[str], list[str]]:
    """Read `CASES` mutated files; return the number of each outcome, and the first failures."""
    file = reader.write(folder)
    content, expected = file.read_bytes(), reader.read(file)
    outcomes, failures = Counter[str](), list[str]()
    with address_space_limit(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning is no failure, and not always raised
        for number in range(FIRST_CASE, FIRST_CASE + CASES):
            case = Case(reader, number)
            mutated, may_differ = case.mutate(content)
            file.write_bytes(mutated)
            outcome = read_case(reader, file, expected, may_differ)
            known = outcome in ("equal", "other", "refused")
            outcomes[outcome if known else "failed"] += 1
            if not known and len(failures) < MAX_SAVED_FAILURES:
                failures.append(case.describe(outcome, mutated))
    return outcomes, failures


def read_case(reader: Reader, file: Path, expected: Any, may_differ: bool) -> str:
    """Return "equal", "other" or "refused", or else what went wrong."""
    try:
        with time_limit(MAX_SECONDS):
            found = reader.read(file)
            is_equal = bool(found == expected)
    except TimeLimitError:
        return f"it takes more than {MAX_SECONDS} s"
    except SteradError as error:
        if any(map(_is_about_memory, _causes(error))):
            return f"it needs more than {MAX_BYTES >> 20} MiB: {error}"
        has_name = file.name in str(error)
        return "refused" if has_name else f"the message does not name the file: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    if is_equal:
        return "equal"
    return "other" if may_differ else "other content is read without an error"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_about_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitError in the main thread after some seconds."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimitError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def address_space_limit() -> Iterator[None]:
    """Limit the address space to `MAX_BYTES` more than now, where the system reports its size."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
