"""`domain`: all classes from the start, and images whose appearance changes by domain.

A dataset with recording sessions, such as V. Lomonaco and D. Maltoni, "CORe50: a New Dataset and
Benchmark for Continuous Object Recognition", 2017, https://arxiv.org/abs/1705.03550, has its
sessions as domains, in the order that numpy's legacy generator draws after the label order. One
evaluation holds all test images, which come from other sessions than the training images. On any
other dataset, the domains are a sequence of transformations; each domain is an evaluation of all
test images under its transformation, and counts from its first training image on.

Forgetting is defined as for tasks: for each evaluation, the best accuracy at any earlier domain
end minus the final accuracy, averaged over evaluations. With the single evaluation of sessions, it
is the drop from the best accuracy.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.seeds import derive, numpy_generator
from sterad.streams.description import STREAMS, Arrangement, random_ranks
from sterad.streams.stream import Evaluation, Shift, Stream
from sterad.streams.tasks import shuffle_within_tasks
from sterad.streams.transforms import Brightness, Color, Permutation, Rotation, Transform
from sterad.validation import Range

Kind = Literal["sessions", "rotation", "permutation", "brightness", "color"]
DEFAULT_DOMAINS = 5
MIN_BRIGHTNESS = 0.25


@STREAMS.register("domain")
@dataclass(frozen=True)
class Domain(Arrangement):
    """One domain after the other: sessions of the dataset, or transformations of all images."""

    kind: Kind | None = None
    """What differs between domains (default: sessions if the dataset has them, else rotation)."""
    domains: Annotated[int, Range(1, 1000)] | None = None
    """Number of transformations (default: 5); the number of sessions is set by the dataset."""
    whole: bool = False
    """Show all images in every domain (default: distribute them, evenly by class, so that each
    comes once)."""
    announced: bool = True
    """Announce the end of each domain."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        default: Kind = "rotation" if dataset.domains is None else "sessions"
        kind = self.kind or default
        rng = numpy_generator(seed, "stream")
        if kind == "sessions":
            return self._sessions(dataset, seed, rng)
        count = DEFAULT_DOMAINS if self.domains is None else self.domains
        transforms = transformations(kind, count, seed)
        _check_inputs(kind, dataset)
        return self._transformed(dataset, transforms, rng)

    def _sessions(self, dataset: Dataset, seed: int, rng: np.random.Generator) -> Stream:
        if dataset.domains is None:
            raise SteradError(
                f"the dataset {dataset.name!r} has no sessions: choose a transformation as kind"
            )
        numbers = session_order(np.unique(dataset.domains), dataset.classes, seed)
        if self.domains not in (None, len(numbers)) or self.whole:
            raise SteradError(
                f"the dataset {dataset.name!r} has {len(numbers)} sessions with separate images: "
                "do not give domains or whole"
            )
        place = np.empty(int(numbers.max()) + 1, dtype=np.int64)
        place[numbers] = np.arange(len(numbers))
        when = place[dataset.domains]
        order = shuffle_within_tasks(np.arange(len(when)), when, rng)
        ends = np.cumsum(np.bincount(when, minlength=len(numbers)))
        scored = Evaluation("all test images", _classes_of(dataset), _test_indices(dataset))
        return self._stream(dataset, order, tuple(ends.tolist()), (), (scored,))

    def _transformed(
        self, dataset: Dataset, transforms: tuple[Transform, ...], rng: np.random.Generator
    ) -> Stream:
        images, count = len(dataset.train_labels), len(transforms)
        if images < count:
            raise SteradError(f"{images} images cannot fill {count} domains: give fewer domains")
        if self.whole:
            order = np.concatenate([rng.permutation(images) for _ in transforms])
            ends = np.arange(1, count + 1) * images
        else:
            when = assign_domains(dataset.train_labels, count, rng)
            order = shuffle_within_tasks(np.arange(images), when, rng)
            ends = np.cumsum(np.bincount(when, minlength=count))
        starts = [0, *ends[:-1].tolist()]
        shifts = tuple(Shift(start, one) for start, one in zip(starts, transforms, strict=True))
        classes, indices = _classes_of(dataset), _test_indices(dataset)
        scored = tuple(
            Evaluation(f"domain {number}", classes, indices, one.transform, one.start + 1)
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
        tasks = (_classes_of(dataset),) * len(ends)
        announced = ends if self.announced else ()
        return Stream(dataset, "domain", order, self.batch_size, tasks, announced, shifts, scored)


def session_order(
    sessions: npt.NDArray[np.int64], classes: int, seed: int
) -> npt.NDArray[np.int64]:
    """Return the sessions shuffled by numpy's legacy generator after the label order.

    >>> session_order(np.array([1, 2, 4, 5, 6, 8, 9, 11]), classes=50, seed=0)
    array([ 5,  4,  2,  8,  9,  6, 11,  1])
    """
    legacy = np.random.RandomState(seed)
    legacy.shuffle(np.arange(classes))
    order = sessions.copy()
    legacy.shuffle(order)
    return order


def transformations(kind: Kind, count: int, seed: int) -> tuple[Transform, ...]:
    """Return `count` transformations, of which the first is the identity.

    Rotations divide half a turn into equal steps, and colors a whole turn; brightness falls to a
    quarter by equal factors; permutations are drawn from the seed.

    >>> transformations("brightness", 3, seed=0)
    (Brightness(factor=1.0), Brightness(factor=0.5), Brightness(factor=0.25))
    """
    if count < 1:
        raise SteradError(f"domains is {count}: give at least 1")
    if kind == "rotation":
        return tuple(Rotation(180 * at / count) for at in range(count))
    if kind == "color":
        return tuple(Color(at / count) for at in range(count))
    if kind == "brightness":
        return tuple(Brightness(MIN_BRIGHTNESS ** (at / max(1, count - 1))) for at in range(count))
    keys = (derive(seed, f"domain {at}") for at in range(1, count))
    return (Permutation(0), *map(Permutation, keys))


def assign_domains(
    labels: npt.NDArray[np.int64], count: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return a domain for each image, with each class spread as evenly as possible."""
    by_class = np.lexsort((random_ranks(labels, rng), labels))
    domain = np.empty(len(labels), dtype=np.int64)
    domain[by_class] = np.arange(len(labels)) % count
    return domain


def _check_inputs(kind: Kind, dataset: Dataset) -> None:
    shape = dataset.input_shape
    if len(shape) != 3 and kind != "permutation":
        raise SteradError(
            f"{kind} needs images and {dataset.name!r} holds vectors: choose permutation as kind"
        )
    if kind == "color" and shape[0] != 3:
        raise SteradError(
            f"color needs three channels and {dataset.name!r} is gray: choose another kind"
        )


def _classes_of(dataset: Dataset) -> tuple[int, ...]:
    return tuple(np.unique(dataset.train_labels).tolist())


def _test_indices(dataset: Dataset) -> npt.NDArray[np.int64]:
    return np.arange(len(dataset.test_labels))
