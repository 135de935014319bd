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


def require_reproduction(module: str) -> Any:
    """Return a module of the package sterad-reproduction, which compares runs with the paper."""
    try:
        return importlib.import_module(f"sterad_reproduction.{module}")
    except ImportError as error:
        raise SteradError(
            "the numbers and claims of the paper are in the package sterad-reproduction, which is "
            "not installed: `pip install -e reproduction` in a checkout of sterad, or "
            "`pip install 'sterad[reproduction]'`"
        ) from error
