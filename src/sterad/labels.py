"""Mapping from a user's labels (integers or strings) to class indices."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sterad.errors import SteradError


class LabelIndex:
    """Assigns the next free index to each new label; an assigned index never changes.

    >>> index = LabelIndex()
    >>> index.encode(np.array(["cat", "dog", "cat"])).tolist(), index.known
    ([0, 1, 0], ['cat', 'dog'])
    """

    def __init__(self, known: Sequence[int | str] = ()) -> None:
        """Start with labels whose positions are their indices."""
        self._index = {label: position for position, label in enumerate(known)}
        if len(self._index) != len(known):
            raise SteradError("labels are given twice: give each label once")

    @property
    def known(self) -> list[int | str]:
        """Labels in the order of their indices."""
        return list(self._index)

    def encode(self, labels: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the indices of `labels`; new labels get new indices in order of appearance."""
        index = self._index
        return np.array([index.setdefault(x, len(index)) for x in self.check(labels)], np.int64)

    def check(self, labels: npt.ArrayLike) -> list[int | str]:
        """Return labels as Python integers or strings; raise an error if the type has changed."""
        plain, known = to_python_labels(labels), self.known
        if known and plain and type(plain[0]) is not type(known[0]):
            raise SteradError(
                f"label {plain[0]!r} is a {type(plain[0]).__name__} and earlier labels are "
                f"{type(known[0]).__name__}, like {known[0]!r}: use one type"
            )
        return plain


def to_python_labels(labels: npt.ArrayLike) -> list[int | str]:
    """Return labels as Python integers or strings, or raise an error that says what is wrong."""
    try:
        array = np.asarray(labels)
    except Exception as error:  # numpy converts objects with their own code
        raise SteradError(f"labels are not a flat list ({error}): give one per image") from error
    if array.ndim != 1:
        raise SteradError(f"labels have shape {array.shape}: give a flat list, one label per image")
    plain: list[int | str] = array.tolist()
    if array.dtype.kind == "U" and isinstance(labels, list | tuple):
        # numpy silently converts [1, "a"] to ["1", "a"], and "a\0" to "a".
        for label, converted in zip(labels, plain, strict=True):
            if label != converted:
                problem = f"is a {type(label).__name__} among strings: use one type"
                if isinstance(label, str):
                    problem = "ends with a zero byte, which numpy removes: rename it"
                raise SteradError(f"label {label!r} {problem}")
    if array.dtype.kind not in "iuUb" and not all(isinstance(label, str) for label in plain):
        raise SteradError(f"labels are of type {array.dtype}: give integers or strings")
    return plain
