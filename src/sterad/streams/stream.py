"""Stream: one pass over the training images of a dataset, seekable to any batch."""

import dataclasses
import json
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.streams.batch import Batch, Boundary
from sterad.streams.digest import digest_of
from sterad.streams.pixels import to_unit
from sterad.streams.transforms import Transform, plain


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A part of the test images that is scored on its own."""

    name: str
    classes: tuple[int, ...]
    indices: npt.NDArray[np.int64]
    """Positions in the test split."""
    transform: Callable[[Tensor], Tensor] | None = None
    """What is done to the images before they are asked, (n, c, h, w) to the same."""
    since: int = 0
    """Images of the stream that must have come before it counts."""


@dataclass(frozen=True)
class Shift:
    """From one image of the stream on, all come under one transformation."""

    start: int
    """Position in the stream of the first such image."""
    transform: Transform


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
    shifts: tuple[Shift, ...] = ()
    """Transformations in the order in which they set in, the first at 0; empty when none does."""
    scored: tuple[Evaluation, ...] = ()
    """What is scored instead of one evaluation per task."""
    settings: str = ""
    """What it was drawn with, in words for people; the hash is of what came out."""

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
        starts = [shift.start for shift in self.shifts]
        if starts and (starts[0] != 0 or (np.diff([*starts, self.samples]) < 1).any()):
            raise SteradError(
                f"the shifts of the stream {self.name!r} begin at {starts}: they must begin at 0 "
                f"and rise to below its {self.samples} samples"
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
        start, end = self._edges[index], self._edges[index + 1]
        chosen = self.order[start:end]
        images, labels = self._arrays
        x = to_unit(torch.from_numpy(images[chosen]))
        return Batch(self._shifted(x, start, end), torch.from_numpy(labels[chosen]))

    def _shifted(self, x: Tensor, start: int, end: int) -> Tensor:
        """Return x, the images from `start` to `end`, each under the transformation of its time."""
        if not self.shifts:
            return x
        cuts = (*(shift.start for shift in self.shifts), self.samples)
        under = [
            shift.transform(x[max(since, start) - start : until - start])
            for shift, (since, until) in zip(self.shifts, pairwise(cuts), strict=True)
            if since < end and until > start
        ]
        return under[0] if len(under) == 1 else torch.cat(under)

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
        """Return what is scored: by default one per task, the test images of its classes."""
        return self.scored or tuple(
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
    def digest(self) -> str:
        """Hash of what a learner is shown: the order, its labels, batches, ends and shifts."""
        shifts = [{"start": one.start, **plain(one.transform)} for one in self.shifts]
        return digest_of(
            "sterad stream 1",
            self.order,
            self.dataset.train_labels[self.order],
            np.array([self.batch_size, *self.ends]),
            json.dumps(shifts, sort_keys=True),
        )

    def describe(self) -> str:
        """Return one line that says what comes, with the head of the hash."""
        parts = (
            f"{self.samples:,} images in {len(self):,} batches of up to {self.batch_size}",
            f"from {len(self.dataset.train_labels):,} of {self.dataset.name}",
            f"{len(self.ends)} ends announced" if self.ends else "no end announced",
            *([f"{len(self.shifts)} transformations"] if self.shifts else []),
            f"hash {self.digest[:12]}",
        )
        drawn = f" ({self.settings})" if self.settings else ""
        return f"{self.name}{drawn}: {', '.join(parts)}"

    def keeping(self, kept: npt.NDArray[np.bool_]) -> "Stream":
        """Return the same stream without the training images that are not `kept`, (N,) bool."""
        stays = kept[self.order]
        before = np.concatenate([[0], np.cumsum(stays)]).tolist()
        ends = tuple(before[end] for end in self.ends)
        shifts = tuple(Shift(before[one.start], one.transform) for one in self.shifts)
        stretches = ([0, *ends], [*(one.start for one in shifts), before[-1]])
        if any((np.diff(cuts) < 1).any() for cuts in stretches):
            raise SteradError(
                f"keeping {before[-1]} of {self.samples} images leaves a task or domain of the "
                f"stream {self.name!r} without any: keep more, or make fewer of them"
            )
        return dataclasses.replace(
            self,
            order=self.order[stays],
            ends=ends,
            shifts=shifts,
            scored=tuple(
                dataclasses.replace(one, since=before[one.since - 1] + 1) if one.since else one
                for one in self.scored
            ),
        )

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
