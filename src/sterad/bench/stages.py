"""Stages: which part of a step goes to views, memory, loss, optimiser, and which to the network."""

from collections.abc import Callable, Mapping

import torch

from sterad.bench.interleaved import Timings, Turns, interleaved
from sterad.bench.subject import Scene
from sterad.experiments.execution import Execution
from sterad.methods.fixed_directions import FixedDirections
from sterad.methods.replay import Replay
from sterad.streams import Batch


def stage_timings(scene: Scene, method: str, execution: Execution, turns: Turns) -> Timings:
    """Return the seconds of a whole step of a fixed-directions method and of its stages alone.

    Beside them, a memory that is larger than any of the paper's.
    """
    learner = scene.learner(method, execution)
    assert isinstance(learner, FixedDirections)
    batch = scene.batch(seed=1)
    joined = Batch.joined(learner.memory.sample(learner.config.memory_batch), batch)
    placed = learner.place(joined.x)
    labels = joined.y.repeat(learner.config.views + 1)
    z = torch.nn.functional.normalize(torch.randn(len(labels), learner.network.outputs))

    def loss() -> None:
        fresh = z.clone().requires_grad_()  # in a step too, the outputs have just been joined
        torch.autograd.grad(learner.objective(fresh, labels), fresh)

    large = Scene(image_size=64, memory=10_000, encoder="flatten")
    many, some = large.after(100_000, execution), large.batch(seed=1)

    def memory(of: Replay, batch: Batch) -> None:
        of.retrieve(batch)
        of.remember(batch)

    acts: Mapping[str, Callable[[], object]] = {
        "step": scene.act(learner),
        "views": lambda: learner.shown(placed),
        "loss": loss,
        "memory": lambda: memory(learner, batch),
        "memory of 10,000 images of 64 pixels": lambda: memory(many, some),
        "optimiser": learner.descend,
        "checks": lambda: learner.admit(batch),
    }
    return interleaved(acts, turns)
