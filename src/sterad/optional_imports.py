"""Optional libraries, imported where they are used."""

import importlib
from typing import Any

from sterad.errors import SteradError


def require_extra(module: str, extra: str) -> Any:
    """Import an optional module, or raise an error that names the extra to install.

    >>> require_extra("json", "ray").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SteradError(
            f"{extra} needs a library that is not installed ({error}): "
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
