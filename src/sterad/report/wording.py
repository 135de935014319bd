"""Names that others chose, as a figure and a page can show them."""

import re
from collections.abc import Sequence

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def fit(text: str) -> str:
    r"""Replace characters that neither XML nor UTF-8 can hold.

    >>> fit("a\x00b")
    'a�b'
    """
    return _UNFIT.sub("\ufffd", text)


def shorten(text: str, most: int = 18) -> str:
    """Cut a long name.

    >>> shorten("a very long name of a class", 12)
    'a very long…'
    """
    line = " ".join(fit(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def tick_names(names: Sequence[str], room: int = 56) -> list[str]:
    """Return names for ticks, or plain numbers where the names would overlap.

    >>> tick_names(["task 1", "task 2"]), tick_names(["a long name"] * 3, 20)
    (['task 1', 'task 2'], ['1', '2', '3'])
    """
    if (max(map(len, names), default=0) + 2) * len(names) <= room:
        return [" ".join(fit(name).split()) for name in names]
    return [str(number) for number in range(1, len(names) + 1)]
