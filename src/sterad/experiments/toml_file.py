"""A TOML file of the user's: its values, or a sentence about what is wrong with it."""

import tomllib
from pathlib import Path
from typing import Any

from sterad.errors import SteradError


def read_toml(file: str | Path, what: str) -> dict[str, Any]:
    """Return the values of a file; `what` it is, "the study" say, begins the sentence."""
    try:
        return tomllib.loads(Path(file).read_text())
    except OSError as error:
        raise SteradError(f"cannot read {what} {str(file)!r}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SteradError(f"{what} {str(file)!r} is not TOML: {error}") from error
