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
        self.file = open(self.path, "a")
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Append one line."""
        try:
            self.file.write(json.dumps(event) + "\n")
            self.file.flush()
        except OSError as error:
            raise SteradError(
                f"cannot write {str(self.path)!r}: {error.strerror}. Make room or choose another "
                "place with --out; the run continues from its last checkpoint"
            ) from error

    def __exit__(self, *_: object) -> None:
        """Close the file; what a full disk refuses here has been reported by `emit`."""
        with contextlib.suppress(OSError):
            self.file.close()
