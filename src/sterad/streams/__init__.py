"""Stage 2: images in time, each seen once, in an order drawn from a seed."""

from sterad.streams.arrangement import Arrangement
from sterad.streams.batch import Batch, Boundary
from sterad.streams.blurry import Blurry
from sterad.streams.changes import ChangeDetector
from sterad.streams.clear import Clear
from sterad.streams.description import STREAMS, Description
from sterad.streams.domain import Domain
from sterad.streams.i_blurry import IBlurry
from sterad.streams.iid import Iid
from sterad.streams.linear import Linear
from sterad.streams.live import LiveStream
from sterad.streams.long_tail import LongTail
from sterad.streams.order_file import read_order, save_order
from sterad.streams.replay_file import ReplayFile
from sterad.streams.si_blurry import SiBlurry
from sterad.streams.stream import Evaluation, Shift, Stream

__all__ = [
    "STREAMS",
    "Arrangement",
    "Batch",
    "Blurry",
    "Boundary",
    "ChangeDetector",
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
