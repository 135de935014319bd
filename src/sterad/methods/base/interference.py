"""Interference: how much a virtual step on the stream batch raises the losses of other samples.

After the virtual step everything is as before, to the bit: weights, buffers, optimizer, gradients
and generators. Only the count of images through the network has grown.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sterad.engine import Engine
from sterad.methods.base.learner import FORWARD_COST
from sterad.methods.base.parts import ReplayConfig, make_retrieval
from sterad.methods.base.restoring import restored
from sterad.streams import Batch

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay


@contextmanager
def virtual_step(engine: Engine, gradients: list[Tensor]) -> Iterator[None]:
    """Move the weights by a step of plain SGD inside the block; gradients are scaled.

    Each weight has the learning rate of its group in the optimizer.
    """
    groups, scale = engine.optimizer.param_groups, float(engine.scaler.get_scale())
    rates = {id(weight): group["lr"] for group in groups for weight in group["params"]}
    weights = engine.trainable
    before = [weight.detach().clone() for weight in weights]
    try:
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.sub_(float(rates[id(weight)]) / scale * gradient)
        yield
    finally:
        with torch.no_grad():
            for weight, saved in zip(weights, before, strict=True):
                weight.copy_(saved)


def loss_rise(learner: "Replay", batch: Batch, candidates: Batch) -> Tensor:
    """Return how much the losses of candidates rise under a virtual step on `batch`: (n,)."""
    recorded, learner.sample_losses = learner.sample_losses, None
    try:
        with restored(learner.engine, learner.rng):
            gradients = learner.engine.gradients(learner.virtual_loss(batch))
        before = _losses(learner, candidates)
        with virtual_step(learner.engine, gradients):
            return _losses(learner, candidates) - before
    finally:
        learner.sample_losses = recorded


def ranking_cost(method: "type[Replay]", config: ReplayConfig, batch_size: int) -> float:
    """Return the cost of the virtual step and of the losses of candidates, for one retrieval."""
    candidates = make_retrieval(config).count_candidates(config.memory_batch)
    step = method.step_cost(config, batch_size, 0) if candidates else 0.0
    return step + 2 * FORWARD_COST * candidates


def _losses(learner: "Replay", candidates: Batch) -> Tensor:
    """Return the losses of raw candidates with the running statistics of BatchNorm: (n,)."""
    learner.engine.count(candidates.x, backward=False)
    outputs = learner.engine.evaluate(lambda network, x: network(x), candidates.x)
    with torch.inference_mode():
        return learner.candidate_losses(outputs, candidates.y)
