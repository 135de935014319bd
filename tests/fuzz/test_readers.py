"""Every reader, on mutated files: 200 per reader in `make test`, 20,000 in `make fuzz`."""

from pathlib import Path

import pytest

from tests.fuzz.data_readers import DATA_READERS
from tests.fuzz.export_readers import EXPORT_READERS
from tests.fuzz.harness import Reader, run_cases
from tests.fuzz.state_readers import STATE_READERS
from tests.fuzz.text_readers import TEXT_READERS

READERS = (*STATE_READERS, *TEXT_READERS, *DATA_READERS, *EXPORT_READERS)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_mutated_file_is_read_or_refused_by_name(
    reader: Reader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    monkeypatch.delenv("STERAD_DATA", raising=False)
    outcomes, failures = run_cases(reader, tmp_path)
    print(f"{reader.name}: {sum(outcomes.values())} cases, {dict(outcomes)}")
    assert not failures, f"{outcomes['failed']} failures, first:\n" + "\n".join(failures[:5])
