"""Stage 2: streams, which present each image once, in an order drawn from a seed."""

from sterad.streams.arrangement import STREAMS, Arrangement, Description
from sterad.streams.batch import Batch, Boundary
from sterad.streams.blurry import Blurry, IBlurry, Linear, SiBlurry
from sterad.streams.domain import Domain
from sterad.streams.live import LiveStream
from sterad.streams.order_file import ReplayFile, read_order, save_order
from sterad.streams.stream import Evaluation, Shift, Stream
from sterad.streams.tasks import Clear, Iid, LongTail

__all__ = [
    "STREAMS",
    "Arrangement",
    "Batch",
    "Blurry",
    "Boundary",
    "Clear",
    "Description",
    "Domain",
    "Evaluation",
    "IBlurry",
    "Iid",
    "Linear",
    "LiveStream",
    "LongTail",
    "ReplayFile",
    "Shift",
    "SiBlurry",
    "Stream",
    "read_order",
    "save_order",
]
