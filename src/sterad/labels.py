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
        plain = self.check(labels)
        for label in dict.fromkeys(plain):
            if label not in self._index:
                self._index[label] = len(self.known)
                self.known.append(label)
        return np.fromiter((self._index[label] for label in plain), np.int64, len(plain))

    def check(self, labels: npt.ArrayLike) -> list[int | str]:
        """Return labels, known or not, as Python's own; refuse another kind than the known ones."""
        plain = plain_labels(labels)
        if self.known and plain and type(plain[0]) is not type(self.known[0]):
            raise SteradError(
                f"label {plain[0]!r} is a {type(plain[0]).__name__} and those before were "
                f"{type(self.known[0]).__name__}, like {self.known[0]!r}: keep to one kind"
            )
        return plain

    def array(self) -> npt.NDArray[np.generic]:
        """Return the known labels, whose positions are their indices."""
        return np.array(self.known)


def plain_labels(labels: npt.ArrayLike) -> list[int | str]:
    """Return labels as Python's own integers or strings, or say why they are none."""
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise SteradError(f"labels are not one flat list ({error}): give one an image") from error
    if array.ndim != 1:
        raise SteradError(f"labels have shape {array.shape}: give one label an image, a flat list")
    plain: list[int | str] = array.tolist()
    if array.dtype.kind == "U" and isinstance(labels, list | tuple):
        # numpy turns [1, "a"] into ["1", "a"] without a word.
        odd = next((one for one in labels if not isinstance(one, str)), "")
        if not isinstance(odd, str):
            raise SteradError(
                f"label {odd!r} is a {type(odd).__name__} among strings: keep to one kind"
            )
    if array.dtype.kind not in "iuUb" and not all(isinstance(one, str) for one in plain):
        raise SteradError(
            f"labels are of type {array.dtype}: labels are integers or strings; round or map yours"
        )
    return plain
