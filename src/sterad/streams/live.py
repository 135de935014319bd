"""LiveStream: a feed of (images, labels) pairs without a known end."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sterad.data import Dataset
from sterad.data.arrays import as_inputs
from sterad.errors import SteradError
from sterad.labels import LabelIndex
from sterad.streams.arrangement import STREAMS
from sterad.streams.batch import Batch, to_unit
from sterad.streams.stream import Stream
from sterad.validation import Count


class LiveStream:
    """An iterator over the batches of a feed; each is read on demand, checked and not stored.

    Labels are integers or strings; each new one gets the next index, listed in `labels.known`.

    >>> import numpy as np
    >>> feed = LiveStream([(np.zeros((2, 8, 8)), ["cat", "dog"]), (np.ones((1, 8, 8)), ["cat"])])
    >>> [batch.y.tolist() for batch in feed], feed.labels.known
    ([[0, 1], [0]], ['cat', 'dog'])
    """

    def __init__(self, source: Iterable[tuple[Any, Any]]) -> None:
        """Wrap a feed without reading from it."""
        self.labels = LabelIndex()
        self.steps = 0
        """Number of batches so far."""
        self._feed = iter(source)
        self._input_shape: tuple[int, ...] | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """Wait for the next pair of the feed and return it as a batch."""
        pair, where = next(self._feed), f"batch {self.steps} of the stream 'live'"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise SteradError(f"{where} is a {type(pair).__name__}: give pairs (images, labels)")
        inputs = as_inputs(pair[0], f"images of {where}")
        labels = pair[1].detach().cpu() if isinstance(pair[1], Tensor) else pair[1]
        count = len(self.labels.check(labels))
        if not len(inputs) or len(inputs) != count:
            raise SteradError(
                f"{where} has {len(inputs)} images and {count} labels: give one label for each "
                "image, and at least one image"
            )
        if self._input_shape not in (None, inputs.shape[1:]):
            raise SteradError(
                f"{where} has inputs of shape {inputs.shape[1:]} and earlier batches had "
                f"{self._input_shape}: give all inputs the same shape"
            )
        self._input_shape = inputs.shape[1:]
        self.steps += 1
        indices = self.labels.encode(labels)
        return Batch(to_unit(torch.from_numpy(inputs)), torch.from_numpy(indices))


@STREAMS.register("live")
@dataclass(frozen=True)
class Live:
    """A feed without a known end; Python only: run(live_config(...), feed=feed)."""

    stretch: Count = 1000
    """Number of images of the feed per moment of the record; it doubles after every 100 moments,
    which are then merged in pairs."""

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Raise: a feed is passed to `run`, not opened from a dataset."""
        raise SteradError(
            "a live stream cannot be opened from a dataset: in Python, call "
            "run(live_config(...), feed=feed)"
        )
