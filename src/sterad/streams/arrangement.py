"""Arrangement: what every stream that is drawn from a seed has in common."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from sterad.data import Dataset
from sterad.streams.imbalance import imbalanced
from sterad.streams.stream import Stream
from sterad.validation import BatchSize, Range, check_fields


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """A description that says in which order images come; to add one, write `arrange`."""

    batch_size: BatchSize = 10
    """Images per batch of the stream."""
    imbalance: Annotated[float, Range(1, 1e6)] | None = None
    """How many times as many images the most frequent class has as the rarest; by default all
    images come."""

    def __post_init__(self) -> None:
        check_fields(self)

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` over the training images."""
        stream = self.arrange(dataset, seed)
        if self.imbalance is not None:
            stream = imbalanced(stream, self.imbalance, seed)
        return dataclasses.replace(stream, settings=f"{self._settings()}seed {seed}")

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` before any long tail."""
        raise NotImplementedError

    def _settings(self) -> str:
        """Return numbers and words of this description, but for those that the stream shows."""
        return "".join(
            f"{one.name} {value:g}, " if isinstance(value, float) else f"{one.name} {value}, "
            for one in dataclasses.fields(self)
            if type(value := getattr(self, one.name)) in (str, int, float)
            and one.name != "batch_size"
        )
