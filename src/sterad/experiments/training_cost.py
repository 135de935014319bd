"""TrainingCost of a learner: pixels and multiply-adds of its passes, and the bytes of its state."""

from sterad.methods import Learner
from sterad.methods.base.learner import FORWARD_COST
from sterad.results.record import TrainingCost


def training_cost(learner: Learner) -> TrainingCost | None:
    """Return what training has taken so far; None if some passes were not counted.

    Passes of earlier versions are missing after a checkpoint of theirs is continued.
    """
    if not all(passes.is_complete for _, passes in learner.passes):
        return None
    counts = [passes.pixels(network) for network, passes in learner.passes]
    forward = sum(forward_only for _, forward_only in counts)
    return TrainingCost(
        pixels=sum(trained for trained, _ in counts) + FORWARD_COST * forward,
        forward_pixels=forward,
        multiply_adds=sum((p.multiply_adds(network) for network, p in learner.passes), 0.0),
        state_bytes=learner.state_bytes,
    )
