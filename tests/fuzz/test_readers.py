"""Every reader, on mutated files: 200 per reader in `make test`, 20,000 in `make fuzz`."""

from pathlib import Path

import pytest

from tests.fuzz.data_readers import DATA_READERS
from tests.fuzz.harness import Reader, run_cases
from tests.fuzz.state_readers import STATE_READERS
from tests.fuzz.text_readers import TEXT_READERS

READERS = (*STATE_READERS, *TEXT_READERS, *DATA_READERS)
KNOWN_FAILURES = {
    "cache-manifest": "KeyError, AttributeError and TypeError; other class names are accepted",
    "cache-array": "TokenError for an odd header; other pixels of the same size are accepted",
    "cifar-names": "MemoryError: a pickle claims a string of any length",
    "idx": "MemoryError: a header claims more bytes than the file has",
    "idx-gzip": "MemoryError: a header claims more bytes than the file has",
    "npz": "TokenError, AttributeError, TypeError, SystemError",
    "order": "MemoryError; errors of the stream do not name the file",
    "archive-zip": "IndexError: a member without a name",
    "archive-tar": "TypeError: a member without a name",
}
"""Readers with failures that are fixed in another branch; each must turn red once it is."""


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_mutated_file_is_read_or_refused_by_name(
    reader: Reader,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    monkeypatch.delenv("STERAD_DATA", raising=False)
    if reason := KNOWN_FAILURES.get(reader.name):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    outcomes, failures = run_cases(reader, tmp_path)
    print(f"{reader.name}: {sum(outcomes.values())} cases, {dict(outcomes)}")
    assert not failures, f"{outcomes['failed']} failures, first:\n" + "\n".join(failures[:5])
