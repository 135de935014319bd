"""Labels as people have them, integers or strings, to the indices that methods learn."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sterad.errors import SteradError


class LabelIndex:
    """Gives each new label the next index; never takes one back.

    >>> index = LabelIndex()
    >>> index.learn(np.array(["cat", "dog", "cat"])).tolist(), index.known
    ([0, 1, 0], ['cat', 'dog'])
    """

    def __init__(self, known: Sequence[int | str] = ()) -> None:
        """Start with labels that have their indices already."""
        self.known: list[int | str] = list(known)
        self._index = {label: at for at, label in enumerate(self.known)}

    def learn(self, labels: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the indices of `labels`, giving new ones to new labels in order of appearance."""
        plain = _plain(labels)
        if self.known and plain and type(plain[0]) is not type(self.known[0]):
            raise SteradError(
                f"label {plain[0]!r} is a {type(plain[0]).__name__} and those before were "
                f"{type(self.known[0]).__name__}, like {self.known[0]!r}: keep to one kind"
            )
        for label in dict.fromkeys(plain):
            if label not in self._index:
                self._index[label] = len(self.known)
                self.known.append(label)
        return np.fromiter((self._index[label] for label in plain), np.int64, len(plain))

    def array(self) -> npt.NDArray[np.generic]:
        """Return the known labels, whose positions are their indices."""
        return np.array(self.known)


def _plain(labels: npt.ArrayLike) -> list[int | str]:
    array = np.asarray(labels)
    if array.ndim != 1:
        raise SteradError(f"labels have shape {array.shape}: give one label an image, a flat list")
    if array.dtype.kind not in "iuUb" and not all(isinstance(one, str) for one in array.tolist()):
        raise SteradError(
            f"labels are of type {array.dtype}: labels are integers or strings; round or map yours"
        )
    plain: list[int | str] = array.tolist()
    return plain
