"""Stream: one pass over the training images of a dataset, seekable to any batch."""

import dataclasses
import hashlib
import json
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
from sterad.streams.batch import Batch, Boundary, to_unit
from sterad.streams.domain_transforms import DomainTransform

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A subset of the test images that is evaluated separately."""

    name: str
    classes: tuple[int, ...]
    indices: IntArray
    """Positions in the test split."""
    transform: DomainTransform | None = None
    """Transformation of the test images before prediction."""
    since: int = 0
    """Number of images of the stream after which the evaluation counts."""


@dataclass(frozen=True)
class Shift:
    """A transformation of all images of the stream from a position on."""

    start: int
    """Position in the stream of the first transformed image."""
    transform: DomainTransform


@dataclass(frozen=True, eq=False)
class Stream:
    """An order of training images, cut into batches that never cross an announced task end."""

    dataset: Dataset
    name: str
    order: IntArray
    """Positions in the train split, in the order of the stream."""
    batch_size: int
    tasks: tuple[tuple[int, ...], ...]
    """Classes of each task; by default each task is an evaluation."""
    ends: tuple[int, ...] = ()
    """Numbers of images after which a task end is announced, ascending; empty if none is."""
    shifts: tuple[Shift, ...] = ()
    """Transformations by ascending start, the first at 0; empty if there are none."""
    scored: tuple[Evaluation, ...] = ()
    """Evaluations that replace those of the tasks."""
    settings: str = ""
    """Options and seed as readable text; not part of the digest."""

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise SteradError(f"batch_size is {self.batch_size}: give at least 1")
        if not len(self.order):
            raise SteradError(f"the stream {self.name!r} is empty: give at least one image")
        if self.order.min() < 0 or self.order.max() >= len(self.dataset.train_labels):
            raise SteradError(
                f"the order of the stream {self.name!r} has positions from {self.order.min()} to "
                f"{self.order.max()}: they must be within the "
                f"{len(self.dataset.train_labels)} training images"
            )
        steps = np.diff([0, *self.ends, self.samples])
        if (steps[:-1] < 1).any() or steps[-1] < 0:
            raise SteradError(
                f"the ends {self.ends} of the stream {self.name!r} must increase from above 0 to "
                f"at most its {self.samples} samples"
            )
        starts = [shift.start for shift in self.shifts]
        if starts and (starts[0] != 0 or (np.diff([*starts, self.samples]) < 1).any()):
            raise SteradError(
                f"the shifts of the stream {self.name!r} begin at {starts}: they must begin at 0 "
                f"and increase to below its {self.samples} samples"
            )

    @property
    def samples(self) -> int:
        """Number of images in the stream."""
        return len(self.order)

    def __len__(self) -> int:
        return len(self._edges) - 1

    def batch(self, index: int) -> Batch:
        """Return batch `index`, counted from 0."""
        if not 0 <= index < len(self):
            raise SteradError(f"batch {index} is not in the stream: give 0 to {len(self) - 1}")
        start, end = self._edges[index], self._edges[index + 1]
        chosen = self.order[start:end]
        images, labels = self._arrays
        x = to_unit(torch.from_numpy(images[chosen]))
        return Batch(self._shifted(x, start, end), torch.from_numpy(labels[chosen]))

    def _shifted(self, x: Tensor, start: int, end: int) -> Tensor:
        """Return the images x, from `start` to `end`, under the transformations set there."""
        if not self.shifts:
            return x
        cuts = (*(shift.start for shift in self.shifts), self.samples)
        parts = [
            shift.transform(x[max(since, start) - start : until - start])
            for shift, (since, until) in zip(self.shifts, pairwise(cuts), strict=True)
            if since < end and until > start
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def samples_after(self, step: int) -> int:
        """Return the number of images in the first `step` batches."""
        if not 0 <= step <= len(self):
            raise SteradError(f"step {step} is not in the stream: give 0 to {len(self)}")
        return self._edges[step]

    @cached_property
    def boundary_steps(self) -> tuple[int, ...]:
        """Steps at which a task end is announced, ascending."""
        return tuple(np.searchsorted(self._edges, self.ends).tolist())

    def boundary(self, step: int) -> Boundary | None:
        """Return the boundary after `step` batches, or None."""
        if step not in self.boundary_steps:
            return None
        return Boundary(task=self.boundary_steps.index(step), step=step)

    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the evaluations: by default one per task, the test images of its classes."""
        labels = self.dataset.test_labels
        return self.scored or tuple(
            Evaluation(f"task {number}", task, np.flatnonzero(np.isin(labels, task)))
            for number, task in enumerate(self.tasks, start=1)
        )

    def proportions(self, bins: int) -> IntArray:
        """Return the images of each class in each of `bins` equal intervals: (bins, classes)."""
        interval, classes = np.arange(self.samples) * bins // self.samples, self.dataset.classes
        cells = interval * classes + self.dataset.train_labels[self.order]
        return np.bincount(cells, minlength=bins * classes).reshape(bins, classes)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what a learner receives: order, labels, batch size, ends and shifts."""
        shifts = [{"start": one.start, **one.transform.to_dict()} for one in self.shifts]
        return digest_of(
            "sterad stream 1",
            self.order,
            self.dataset.train_labels[self.order],
            np.array([self.batch_size, *self.ends]),
            json.dumps(shifts, sort_keys=True),
        )

    def describe(self) -> str:
        """Return a one-line description with the first digits of the digest."""
        parts = (
            f"{self.samples:,} images in {len(self):,} batches of up to {self.batch_size}",
            f"from {len(self.dataset.train_labels):,} of {self.dataset.name}",
            f"{len(self.ends)} ends announced" if self.ends else "no end announced",
            *([f"{len(self.shifts)} transformations"] if self.shifts else []),
            f"hash {self.digest[:12]}",
        )
        drawn = f" ({self.settings})" if self.settings else ""
        return f"{self.name}{drawn}: {', '.join(parts)}"

    def filter_images(self, kept: npt.NDArray[np.bool_]) -> "Stream":
        """Return the stream restricted to the training images in `kept`, (N,) bool."""
        stays = kept[self.order]
        before = np.concatenate([[0], np.cumsum(stays)]).tolist()
        ends = tuple(before[end] for end in self.ends)
        shifts = tuple(Shift(before[one.start], one.transform) for one in self.shifts)
        intervals = ([0, *ends], [*(one.start for one in shifts), before[-1]])
        if any((np.diff(cuts) < 1).any() for cuts in intervals):
            raise SteradError(
                f"keeping {before[-1]} of {self.samples} images leaves a task or domain of the "
                f"stream {self.name!r} empty: keep more images, or use fewer tasks or domains"
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
        """Number of images before each batch, and the total; Python integers slice faster."""
        edges = [0]
        for end in sorted({*self.ends, self.samples}):
            edges += [*range(edges[-1] + self.batch_size, end, self.batch_size), end]
        return edges

    @cached_property
    def _arrays(self) -> tuple[npt.NDArray[Any], IntArray]:
        """Images and labels as base arrays: indexing a numpy.memmap is 1.5 times as slow."""
        return np.asarray(self.dataset.train_images), np.asarray(self.dataset.train_labels)


def digest_of(*parts: npt.NDArray[Any] | str) -> str:
    """Return the SHA-256 of texts and integer arrays as hex digits, the same on every machine.

    >>> digest_of(np.arange(3), "a") == digest_of(np.arange(3, dtype=np.int32), "a")
    True
    >>> digest_of("ab", "c") == digest_of("a", "bc")
    False
    """
    found = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part.astype("<i8").tobytes()
        found.update(len(content).to_bytes(8, "little"))  # separates the parts unambiguously
        found.update(content)
    return found.hexdigest()
