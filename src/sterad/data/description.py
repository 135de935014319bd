"""Datasets by name: a frozen description whose fields are the options, and what it loads."""

from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

from sterad.data.dataset import Dataset
from sterad.registry import Registry


@dataclass(frozen=True)
class Defaults:
    """What a run takes where the user says nothing, known without loading a single image."""

    width: int
    """Width of the encoder."""
    tasks: int
    """Number of tasks that the classes are split into."""
    scale: float
    """Scale of the half-normal law that blurs the stream, in images."""

    @classmethod
    def for_counts(cls, classes: int, images: int, width: int = 64) -> "Defaults":
        """Return at most five equal tasks, blurred like the paper's CIFAR-10.

        There the scale is 1,500 for tasks of 10,000 images: 0.15 of the images of a task.

        >>> Defaults.for_counts(classes=10, images=50_000)
        Defaults(width=64, tasks=5, scale=1500.0)
        """
        tasks = max(count for count in range(1, 6) if classes % count == 0)
        return cls(width=width, tasks=tasks, scale=3 * images / tasks / 20)


def equal_tasks(classes: int, usual: int) -> int:
    """Return at most the usual number of equal tasks, of two classes or more where that goes.

    >>> equal_tasks(100, 10), equal_tasks(20, 10), equal_tasks(10, 10), equal_tasks(50, 8)
    (10, 10, 5, 5)
    """
    most = max(1, min(usual, classes // 2))
    return max(count for count in range(1, most + 1) if classes % count == 0)


class Description(Protocol):
    """A frozen dataclass that says which images, and can fetch them."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def load(self) -> Dataset:
        """Return the images."""
        ...

    def defaults(self) -> Defaults:
        """Return what a run on them takes where the user says nothing."""
        ...


DATASETS: Registry[type[Description]] = Registry("dataset", "sterad.datasets")
