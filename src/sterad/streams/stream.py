"""Stream: one pass over the training images of a dataset, seekable to any batch."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.streams.batch import Batch, Boundary
from sterad.streams.pixels import to_unit


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A part of the test images that is scored on its own."""

    name: str
    classes: tuple[int, ...]
    indices: npt.NDArray[np.int64]
    """Positions in the test split."""


@dataclass(frozen=True, eq=False)
class Stream:
    """An order of training images, cut into batches that never cross an announced end."""

    dataset: Dataset
    name: str
    order: npt.NDArray[np.int64]
    """Positions in the train split, in the order in which they come."""
    batch_size: int
    tasks: tuple[tuple[int, ...], ...]
    """Classes of each task; each is an evaluation, announced or not."""
    ends: tuple[int, ...] = ()
    """Samples after which a task's end is announced, rising; empty when none is."""

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise SteradError(f"batch_size is {self.batch_size}: give at least 1")
        if not len(self.order):
            raise SteradError(f"the stream {self.name!r} is empty: give at least one image")
        if self.order.min() < 0 or self.order.max() >= len(self.dataset.train_labels):
            raise SteradError(
                f"the order of the stream {self.name!r} reaches from {self.order.min()} to "
                f"{self.order.max()}: it must stay within the "
                f"{len(self.dataset.train_labels)} training images"
            )
        steps = np.diff([0, *self.ends, self.samples])
        if (steps[:-1] < 1).any() or steps[-1] < 0:
            raise SteradError(
                f"the ends {self.ends} of the stream {self.name!r} must rise from above 0 to at "
                f"most its {self.samples} samples"
            )

    @property
    def classes(self) -> int:
        """Number of classes of the dataset."""
        return self.dataset.classes

    @property
    def samples(self) -> int:
        """Number of images that come."""
        return len(self.order)

    def __len__(self) -> int:
        return len(self._edges) - 1

    def batch(self, index: int) -> Batch:
        """Return batch `index`, counted from 0."""
        if not 0 <= index < len(self):
            raise SteradError(f"batch {index} of {len(self)}: give 0 to {len(self) - 1}")
        chosen = self.order[self._edges[index] : self._edges[index + 1]]
        images, labels = self._arrays
        return Batch(to_unit(torch.from_numpy(images[chosen])), torch.from_numpy(labels[chosen]))

    def samples_after(self, step: int) -> int:
        """Return how many images the first `step` batches hold."""
        if not 0 <= step <= len(self):
            raise SteradError(f"step {step} of {len(self)} batches: give 0 to {len(self)}")
        return self._edges[step]

    def events(self, start: int = 0) -> Iterator[tuple[int, Batch | Boundary]]:
        """Yield (step, event), where step counts the batches up to and with this event.

        `start` is the number of batches already learnt: the first event is batch `start`, and a
        boundary right after batch `start - 1` counts as delivered.
        """
        self.samples_after(start)  # refuses a start beyond the stream
        for done in range(start + 1, len(self) + 1):
            yield done, self.batch(done - 1)
            if (boundary := self.boundary(done)) is not None:
                yield done, boundary

    @cached_property
    def boundary_steps(self) -> tuple[int, ...]:
        """Steps at which the end of a task is announced, rising."""
        step_of = {edge: step for step, edge in enumerate(self._edges)}
        return tuple(step_of[end] for end in self.ends)

    def boundary(self, step: int) -> Boundary | None:
        """Return what is announced after `step` batches, if anything is."""
        task = bisect_left(self.boundary_steps, step)
        if self.boundary_steps[task : task + 1] != (step,):
            return None
        return Boundary(task=task, step=step)

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return one evaluation per task: the test images of its classes."""
        return tuple(
            Evaluation(
                name=f"task {number}",
                classes=task,
                indices=np.flatnonzero(np.isin(self.dataset.test_labels, task)),
            )
            for number, task in enumerate(self.tasks, start=1)
        )

    def proportions(self, bins: int = 100) -> npt.NDArray[np.int64]:
        """Return how many images of each class come in each equal stretch: (bins, classes)."""
        stretch = np.arange(self.samples) * bins // self.samples
        cells = stretch * self.classes + self.dataset.train_labels[self.order]
        counts = np.bincount(cells, minlength=bins * self.classes)
        return counts.reshape(bins, self.classes).astype(np.int64)

    @cached_property
    def _edges(self) -> list[int]:
        """Samples before each batch, and the total; plain integers, as slices want them."""
        edges = [0]
        for end in sorted({*self.ends, self.samples}):
            edges += [*range(edges[-1] + self.batch_size, end, self.batch_size), end]
        return edges

    @cached_property
    def _arrays(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Plain views: a memory-mapped array costs half as much again to index as its view."""
        return np.asarray(self.dataset.train_images), np.asarray(self.dataset.train_labels)
