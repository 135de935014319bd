import fcntl
import threading
import time
from pathlib import Path

import pytest

from sterad.data.lock import locked
from sterad.errors import SteradError


def test_waiting_and_refusing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lock"
    with open(file, "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with (
            pytest.raises(SteradError, match="another process is decoding x: wait"),
            locked(file, "decoding x", wait=False),
        ):
            pytest.fail("it was held")
        release = threading.Timer(0.2, lambda: fcntl.flock(other, fcntl.LOCK_UN))
        release.start()
        started = time.monotonic()
        with locked(file, "decoding x"):
            assert time.monotonic() - started > 0.1
        release.join()
    assert "waiting for another process that is decoding x" in capsys.readouterr().err
