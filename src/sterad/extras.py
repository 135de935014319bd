"""Optional libraries: imported where they are used, and asked for in a sentence where missing."""

import importlib
from typing import Any

from sterad.errors import SteradError


def require_extra(module: str, extra: str) -> Any:
    """Return an optional module, or say which extra of the package brings it.

    >>> require_extra("json", "ray").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SteradError(
            f"{extra} is asked for and its library is not installed ({error}): "
            f"pip install 'sterad[{extra}]'"
        ) from error
