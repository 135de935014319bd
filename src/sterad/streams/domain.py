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

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.seeds import derive, numpy_generator
from sterad.streams.arrangement import STREAMS, Arrangement, random_ranks
from sterad.streams.domain_transforms import (
    Brightness,
    Color,
    DomainTransform,
    Permutation,
    Rotation,
)
from sterad.streams.stream import Evaluation, IntArray, Shift, Stream
from sterad.streams.tasks import shuffle_within_tasks
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
        kind = self.kind or ("rotation" if dataset.domains is None else "sessions")
        labels, rng = dataset.train_labels, numpy_generator(seed, "stream")
        transforms = () if kind == "sessions" else self._transforms(kind, dataset, seed)
        if transforms and self.whole:
            order = np.concatenate([rng.permutation(len(labels)) for _ in transforms])
            counts = np.full(len(transforms), len(labels))
        else:
            domain = (
                assign_domains(labels, len(transforms), rng)
                if transforms
                else self._sessions(dataset, seed)
            )
            order, counts = shuffle_within_tasks(domain, rng), np.bincount(domain)
        ends = tuple(np.cumsum(counts).tolist())
        shifts = tuple(map(Shift, (0, *ends), transforms))
        classes = tuple(np.unique(labels).tolist())
        tested = np.arange(len(dataset.test_labels))
        scored = tuple(
            Evaluation(f"domain {number}", classes, tested, shift.transform, shift.start + 1)
            for number, shift in enumerate(shifts, start=1)
        ) or (Evaluation("all test images", classes, tested),)
        announced = ends if self.announced else ()
        tasks = (classes,) * len(ends)
        return Stream(dataset, "domain", order, self.batch_size, tasks, announced, shifts, scored)

    def _transforms(self, kind: Kind, dataset: Dataset, seed: int) -> tuple[DomainTransform, ...]:
        """Return the transformation of each domain; raise if the images do not allow it."""
        shape, images = dataset.input_shape, len(dataset.train_labels)
        if len(shape) != 3 and kind != "permutation":
            raise SteradError(
                f"{kind} needs images and {dataset.name!r} holds vectors: "
                "choose permutation as kind"
            )
        if kind == "color" and shape[0] != 3:
            raise SteradError(
                f"color needs three channels and {dataset.name!r} is gray: choose another kind"
            )
        count = self.domains or DEFAULT_DOMAINS
        if images < count:
            raise SteradError(f"{images} images cannot fill {count} domains: give fewer domains")
        return transformations(kind, count, seed)

    def _sessions(self, dataset: Dataset, seed: int) -> IntArray:
        """Return the position of the session of each image in the order of the stream."""
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
        position = np.empty(int(numbers.max()) + 1, dtype=np.int64)
        position[numbers] = np.arange(len(numbers))
        return position[dataset.domains]


def session_order(sessions: IntArray, classes: int, seed: int) -> IntArray:
    """Return the sessions shuffled by numpy's legacy generator after the label order.

    >>> session_order(np.array([1, 2, 4, 5, 6, 8, 9, 11]), classes=50, seed=0)
    array([ 5,  4,  2,  8,  9,  6, 11,  1])
    """
    legacy = np.random.RandomState(seed)
    legacy.shuffle(np.arange(classes))
    order = sessions.copy()
    legacy.shuffle(order)
    return order


def transformations(kind: Kind, count: int, seed: int) -> tuple[DomainTransform, ...]:
    """Return `count` transformations, of which the first is the identity.

    Rotations divide half a turn into equal steps, and colors a whole turn; brightness falls to a
    quarter by equal factors; permutations are drawn from the seed.

    >>> transformations("brightness", 3, seed=0)
    (Brightness(factor=1.0), Brightness(factor=0.5), Brightness(factor=0.25))
    """
    if kind == "rotation":
        return tuple(Rotation(180 * at / count) for at in range(count))
    if kind == "color":
        return tuple(Color(at / count) for at in range(count))
    if kind == "brightness":
        return tuple(Brightness(MIN_BRIGHTNESS ** (at / max(1, count - 1))) for at in range(count))
    keys = (derive(seed, f"domain {at}") for at in range(1, count))
    return (Permutation(0), *map(Permutation, keys))


def assign_domains(labels: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return a domain for each image, with each class spread as evenly as possible."""
    by_class = np.lexsort((random_ranks(labels, rng), labels))
    domain = np.empty(len(labels), dtype=np.int64)
    domain[by_class] = np.arange(len(labels)) % count
    return domain
