"""Events as JSON, a line each."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sterad.errors import SteradError


class JsonLines:
    """One line of JSON per event, appended and flushed, so that a kill loses at most a line."""

    def __init__(self, path: Path) -> None:
        """Name the file."""
        self.path = path

    def __enter__(self) -> Self:
        """Open for appending."""
        try:
            self.file = open(self.path, "a")
        except OSError as error:
            raise self._refusal(error) from error
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Append one line."""
        try:
            self.file.write(json.dumps(event) + "\n")
            self.file.flush()
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> SteradError:
        return SteradError(
            f"cannot write {str(self.path)!r}: {error.strerror}. Make room or choose another "
            "place with --out; the run continues from its last checkpoint"
        )

    def __exit__(self, *_: object) -> None:
        """Close the file; what a full disk refuses here has been reported by `emit`."""
        with contextlib.suppress(OSError):
            self.file.close()
