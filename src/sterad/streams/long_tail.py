"""`long-tail`: another stream with frequent and rare classes.

Every stream of the package has the option `imbalance`, which does the same and keeps all other
options of that stream. `long-tail` takes the stream by name and uses its default options.
"""

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.streams.description import STREAMS
from sterad.streams.stream import Stream
from sterad.streams.tasks import TaskSplit
from sterad.validation import Range, Scale


@STREAMS.register("long-tail")
@dataclass(frozen=True)
class LongTail(TaskSplit):
    """Another stream whose class frequencies form an exponential long tail."""

    imbalance: Annotated[float, Range(1, 1e6)] = 100.0
    """Ratio of the image counts of the most and the least frequent class."""
    base: str = "clear"
    """Name of the stream to thin out."""
    scale: Scale | None = None
    """Scale of a blurry base, in images (default: set by the dataset)."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        described = STREAMS[self.base]
        if issubclass(described, LongTail):
            raise SteradError(f"base {self.base!r} is a long tail itself: name another stream")
        base_fields = {field.name for field in dataclasses.fields(described)} - {"imbalance"}
        shared = {one.name for one in dataclasses.fields(self)} & base_fields
        base = described(**{name: getattr(self, name) for name in shared})
        return dataclasses.replace(base.open(dataset, seed), name=f"long-tail {self.base}")
