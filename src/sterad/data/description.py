"""Dataset descriptions: frozen dataclasses, registered by name, whose fields are the options."""

from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

from sterad.data.dataset import Dataset
from sterad.errors import SteradError
from sterad.registry import Registry


@dataclass(frozen=True)
class Defaults:
    """Default settings of a run on a dataset, available without loading the images."""

    width: int
    """Width of the encoder."""
    tasks: int
    """Number of tasks that the classes are split into."""
    scale: float
    """Scale of the half-normal distribution that blurs the stream, in images."""

    @classmethod
    def for_counts(cls, classes: int, images: int, width: int = 64) -> "Defaults":
        """Return at most five equal tasks, with the blur of the paper's CIFAR-10.

        The paper uses a scale of 1,500 for tasks of 10,000 images: 0.15 of the images of a task.

        >>> Defaults.for_counts(classes=10, images=50_000)
        Defaults(width=64, tasks=5, scale=1500.0)
        """
        tasks = max(count for count in range(1, 6) if classes % count == 0)
        return cls(width=width, tasks=tasks, scale=3 * images / tasks / 20)


def equal_tasks(classes: int, max_tasks: int) -> int:
    """Return the largest number of equal tasks up to `max_tasks`.

    Each task has two classes or more if possible.

    >>> equal_tasks(100, 10), equal_tasks(20, 10), equal_tasks(10, 10), equal_tasks(50, 8)
    (10, 10, 5, 5)
    """
    limit = max(1, min(max_tasks, classes // 2))
    return max(count for count in range(1, limit + 1) if classes % count == 0)


class Description(Protocol):
    """A frozen dataclass that describes a dataset and loads it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def load(self) -> Dataset:
        """Return the images and labels."""
        ...

    def defaults(self) -> Defaults:
        """Return the default settings of a run on this dataset."""
        ...


DATASETS: Registry[type[Description]] = Registry("dataset", "sterad.datasets")


@DATASETS.register("feed")
@dataclass(frozen=True)
class Feed:
    """Images from a live feed; used with the stream live, from Python only."""

    def load(self) -> Dataset:
        """Raise an error: the images of a feed are not available in advance."""
        raise SteradError(
            "the dataset feed cannot be loaded: call run(live_config(...), feed=feed) from Python"
        )

    def defaults(self) -> Defaults:
        """Return a small encoder and a single task."""
        return Defaults(width=20, tasks=1, scale=1.0)
