"""Your own retrieval: replay only classes that are not in the stream batch.

sterad train er --plugin examples/my_retrieval.py --retrieval other-classes
"""

import torch

from sterad.memory import RETRIEVALS, Memory, Retrieval
from sterad.memory.retrieval import LossRise, take
from sterad.streams import Batch


@RETRIEVALS.register("other-classes")
class OtherClasses(Retrieval):
    """Random samples of classes that are not in the stream batch, if there are any."""

    def retrieve(self, memory: Memory, n: int, batch: Batch, loss_rise: LossRise) -> Batch:
        """Draw twice as many samples and keep the first `n` of other classes."""
        drawn = memory.sample(2 * n)
        is_other = ~torch.isin(drawn.y, batch.y)
        others = is_other.nonzero().squeeze(1)
        return take(drawn, others[:n]) if len(others) else memory.sample(n)
