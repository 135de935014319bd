"""`long-tail`: any other stream, with frequent and rare classes; see `imbalance`.

Every stream of the package has the option `imbalance`, which does the same and leaves all other
options of that stream open; `long-tail` gives the one that it is based on its usual values.
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
    """Another stream with an exponential tail of rare classes; ends are announced as there."""

    imbalance: Annotated[float, Range(1, 1e6)] = 100.0
    """How many times as many images the most frequent class has as the rarest."""
    base: str = "clear"
    """The stream that is thinned out, by name."""
    scale: Scale | None = None
    """Scale of a blurry base, in images; by default the dataset's own."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` before any long tail."""
        described = STREAMS[self.base]
        if issubclass(described, LongTail):
            raise SteradError(f"base {self.base!r} is a long tail itself: name another stream")
        theirs = {field.name for field in dataclasses.fields(described)} - {"imbalance"}
        shared = {one.name for one in dataclasses.fields(self)} & theirs
        base = described(**{name: getattr(self, name) for name in shared})
        return dataclasses.replace(base.open(dataset, seed), name=f"long-tail {self.base}")
