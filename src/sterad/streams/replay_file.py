"""`replay-file`: an order that was saved earlier, by anyone; see `order_file`."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.streams.description import STREAMS
from sterad.streams.order_file import order_hash, read_order
from sterad.streams.stream import Stream


@STREAMS.register("replay-file")
@dataclass(frozen=True)
class ReplayFile:
    """The stream of a file, with the batches, ends and evaluations that it had when saved."""

    file: Path = field(default=Path("order.npz"), metadata={"place": True})
    """An exported stream over the dataset of this run."""
    hash: str | None = None
    """The hash that the stream must have, or its beginning; by default any."""

    def settled(self) -> "ReplayFile":
        """Return the same with the hash of the file: it says which stream, wherever that lies."""
        return self if self.hash else dataclasses.replace(self, hash=order_hash(self.file))

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the saved stream; the seed has no say in it."""
        stream = read_order(self.file, dataset)
        if self.hash is not None and not stream.digest.startswith(self.hash):
            raise SteradError(
                f"the order file {str(self.file)!r} has the hash {stream.digest[:12]} and not "
                f"{self.hash}: ask for the file of that stream, or give no hash"
            )
        return stream
