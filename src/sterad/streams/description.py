"""Streams by name: a frozen description whose fields are the options, and what it opens."""

from dataclasses import Field
from typing import Any, ClassVar, Protocol

from sterad.data import Dataset
from sterad.registry import Registry
from sterad.streams.stream import Stream


class Description(Protocol):
    """A frozen dataclass that says in which order the images of any dataset come."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream over the training images; equal arguments give equal streams."""
        ...


STREAMS: Registry[type[Description]] = Registry("stream", "sterad.streams")
