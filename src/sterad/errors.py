"""The error for mistakes of users."""

from collections.abc import Iterable


class SteradError(ValueError):
    """An error that the user can fix; the command line prints its message and exits with 2.

    The message names the value, the rule and the remedy.
    """


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return a question that names the known name nearest to a misspelled one; "" if none is near.

    >>> suggest_name("memry", ["width", "memory"]), suggest_name("zzz", ["width", "memory"])
    ("did you mean 'memory'? ", '')
    """
    from difflib import get_close_matches  # `sterad --help` does not need it

    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}? " if near else ""
