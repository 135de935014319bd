"""The errors for mistakes of users."""

import sys
from collections.abc import Iterable


class SteradError(ValueError):
    """An error that the user can fix; the command line prints its message and exits with 2.

    The message names the value, the rule and the remedy.
    """


class NotFittedError(SteradError, AttributeError):
    """A call that needs a fitted estimator."""


def not_fitted(message: str) -> NotFittedError:
    """Return the error, which is also scikit-learn's where scikit-learn is in use."""
    module = sys.modules.get("sklearn.exceptions")
    if module is None:
        return NotFittedError(message)
    kind: type[NotFittedError] = type(
        "NotFittedError", (NotFittedError, module.NotFittedError), {"__doc__": "Not fitted."}
    )
    return kind(message)


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return a question that names the known name nearest to a misspelled one; "" if none is near.

    >>> suggest_name("memry", ["width", "memory"]), suggest_name("zzz", ["width", "memory"])
    ("did you mean 'memory'? ", '')
    """
    from difflib import get_close_matches  # `sterad --help` does not need it

    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}? " if near else ""
