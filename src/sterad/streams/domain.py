"""`domain`: all classes from the start, and images whose look changes from domain to domain.

Sessions are those of the dataset itself, as in V. Lomonaco and D. Maltoni, "CORe50: a New Dataset
and Benchmark for Continuous Object Recognition", 2017, https://arxiv.org/abs/1705.03550, in the
order that numpy's legacy generator draws after the label order. There one evaluation holds all test
images, which come from sessions that are never learnt. Any other dataset is put under a sequence of
transformations; there each domain is an evaluation, all test images as it shows them, and counts
from its first image on.

Forgetting keeps its definition on domains: per evaluation, the best accuracy at any earlier end of
a domain minus the last one, then the mean over evaluations. With the one evaluation of sessions it
says how far the accuracy has fallen from its best.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.seeds import derive, numpy_generator
from sterad.streams.arrangement import Arrangement
from sterad.streams.description import STREAMS
from sterad.streams.ranks import random_ranks
from sterad.streams.stream import Evaluation, Shift, Stream
from sterad.streams.tasks import shuffled_by_task
from sterad.streams.transforms import Brightness, Colour, Permutation, Rotation, Transform
from sterad.validation import Range

Kind = Literal["sessions", "rotation", "permutation", "brightness", "colour"]
USUAL = 5
DARKEST = 0.25


@STREAMS.register("domain")
@dataclass(frozen=True)
class Domain(Arrangement):
    """One look of the images after the other: sessions of a dataset, or transformations."""

    kind: Kind | None = None
    """What changes; by default the sessions of a dataset that has some, else rotation."""
    domains: Annotated[int, Range(1, 1000)] | None = None
    """Number of transformations, 5 by default; sessions are as many as the dataset has."""
    whole: bool = False
    """Whether each transformation shows all images again; by default they are dealt out, class by
    class, and each comes once."""
    announced: bool = True
    """Whether the end of each domain is announced."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` before any long tail."""
        usual: Kind = "rotation" if dataset.domains is None else "sessions"
        kind = self.kind or usual
        rng = numpy_generator(seed, "stream")
        if kind == "sessions":
            return self._sessions(dataset, seed, rng)
        looks = transformations(kind, USUAL if self.domains is None else self.domains, seed)
        _check_inputs(kind, dataset)
        return self._transformed(dataset, looks, rng)

    def _sessions(self, dataset: Dataset, seed: int, rng: np.random.Generator) -> Stream:
        if dataset.domains is None:
            raise SteradError(
                f"the dataset {dataset.name!r} has no sessions: choose a transformation as kind"
            )
        numbers = session_order(np.unique(dataset.domains), dataset.classes, seed)
        if self.domains not in (None, len(numbers)) or self.whole:
            raise SteradError(
                f"the dataset {dataset.name!r} has {len(numbers)} sessions, each with images of "
                "its own: leave domains and whole away"
            )
        place = np.empty(int(numbers.max()) + 1, dtype=np.int64)
        place[numbers] = np.arange(len(numbers))
        when = place[dataset.domains]
        order = shuffled_by_task(np.arange(len(when)), when, rng)
        ends = np.cumsum(np.bincount(when, minlength=len(numbers)))
        scored = Evaluation("all test images", _present(dataset), _all(dataset))
        return self._stream(dataset, order, tuple(ends.tolist()), (), (scored,))

    def _transformed(
        self, dataset: Dataset, looks: tuple[Transform, ...], rng: np.random.Generator
    ) -> Stream:
        images, count = len(dataset.train_labels), len(looks)
        if images < count:
            raise SteradError(f"{images} images cannot fill {count} domains: make fewer")
        if self.whole:
            order = np.concatenate([rng.permutation(images) for _ in looks])
            ends = np.arange(1, count + 1) * images
        else:
            when = dealt(dataset.train_labels, count, rng)
            order = shuffled_by_task(np.arange(images), when, rng)
            ends = np.cumsum(np.bincount(when, minlength=count))
        starts = [0, *ends[:-1].tolist()]
        shifts = tuple(Shift(start, look) for start, look in zip(starts, looks, strict=True))
        scored = tuple(
            Evaluation(
                f"domain {number}", _present(dataset), _all(dataset), one.transform, one.start + 1
            )
            for number, one in enumerate(shifts, start=1)
        )
        return self._stream(dataset, order, tuple(ends.tolist()), shifts, scored)

    def _stream(
        self,
        dataset: Dataset,
        order: npt.NDArray[np.int64],
        ends: tuple[int, ...],
        shifts: tuple[Shift, ...],
        scored: tuple[Evaluation, ...],
    ) -> Stream:
        tasks = (_present(dataset),) * len(ends)
        told = ends if self.announced else ()
        return Stream(dataset, "domain", order, self.batch_size, tasks, told, shifts, scored)


def session_order(
    sessions: npt.NDArray[np.int64], classes: int, seed: int
) -> npt.NDArray[np.int64]:
    """Return sessions as numpy's legacy generator shuffles them, after the label order.

    >>> session_order(np.array([1, 2, 4, 5, 6, 8, 9, 11]), classes=50, seed=0)
    array([ 5,  4,  2,  8,  9,  6, 11,  1])
    """
    legacy = np.random.RandomState(seed)
    legacy.shuffle(np.arange(classes))
    order = sessions.copy()
    legacy.shuffle(order)
    return order


def transformations(kind: Kind, count: int, seed: int) -> tuple[Transform, ...]:
    """Return `count` transformations that begin with the images as they are.

    Rotations share half a turn, colours a whole one; brightness falls to a quarter by equal
    factors; permutations are drawn from the seed.

    >>> transformations("brightness", 3, seed=0)
    (Brightness(factor=1.0), Brightness(factor=0.5), Brightness(factor=0.25))
    """
    if count < 1:
        raise SteradError(f"domains is {count}: give at least 1")
    if kind == "rotation":
        return tuple(Rotation(180 * at / count) for at in range(count))
    if kind == "colour":
        return tuple(Colour(at / count) for at in range(count))
    if kind == "brightness":
        return tuple(Brightness(DARKEST ** (at / max(1, count - 1))) for at in range(count))
    keys = (derive(seed, f"domain {at}") for at in range(1, count))
    return (Permutation(0), *map(Permutation, keys))


def dealt(
    labels: npt.NDArray[np.int64], count: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return a domain for each image, so that each class and the whole are as even as can be."""
    line = np.lexsort((random_ranks(labels, rng), labels))
    domain = np.empty(len(labels), dtype=np.int64)
    domain[line] = np.arange(len(labels)) % count
    return domain


def _check_inputs(kind: Kind, dataset: Dataset) -> None:
    shape = dataset.input_shape
    if len(shape) != 3 and kind != "permutation":
        raise SteradError(
            f"{kind} needs images and {dataset.name!r} holds vectors: choose permutation as kind"
        )
    if kind == "colour" and shape[0] != 3:
        raise SteradError(
            f"colour needs three channels and {dataset.name!r} is grey: choose another kind"
        )


def _present(dataset: Dataset) -> tuple[int, ...]:
    return tuple(np.unique(dataset.train_labels).tolist())


def _all(dataset: Dataset) -> npt.NDArray[np.int64]:
    return np.arange(len(dataset.test_labels))
