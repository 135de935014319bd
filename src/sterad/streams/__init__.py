"""Stage 2: images in time, each seen once, in an order drawn from a seed."""

from sterad.streams.batch import Batch, Boundary
from sterad.streams.blurry import Blurry
from sterad.streams.changes import ChangeDetector
from sterad.streams.clear import Clear
from sterad.streams.description import STREAMS, Description
from sterad.streams.iid import Iid
from sterad.streams.stream import Evaluation, Stream

__all__ = [
    "STREAMS",
    "Batch",
    "Blurry",
    "Boundary",
    "ChangeDetector",
    "Clear",
    "Description",
    "Evaluation",
    "Iid",
    "Stream",
]
