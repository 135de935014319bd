"""Flattening: a replayed image that is classified correctly keeps its posterior near the weights.

The switch of the loss landscape in PDFK (AAAI 2026). After the gradients of a step, for replayed
images that the network classifies correctly, with posterior q_θ and the weights θ_l of each layer:
  1. δ_l ~ N(0, ε² ‖θ_l‖² / n_l), for n_l weights: a random direction of relative length ε;
  2. v = ∇ mean KL(q_θ ‖ q_(θ+δ)) and δ_l += γ (‖θ_l‖ / ‖v_l‖) v_l: one step of ascent;
  3. add the gradient of λ mean KL(q_θ ‖ q_(θ+δ)) at θ + δ to those of the step;
  4. restore θ, and step.

Differences and choices, where the paper was not at hand: every weight tensor is a layer; the
variance of the noise is divided by n_l, so that ε and γ are both relative to the length of θ_l;
images are raw; all passes normalize with the statistics of the replayed batch and leave running
statistics as they are. The paper's λ, ε and γ are not known, and ours are not tuned.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.base.additions import Addition
from sterad.methods.base.learner import FORWARD_COST
from sterad.methods.base.restoring import restored
from sterad.seeds import generator
from sterad.streams import Batch
from sterad.validation import ADVANCED, OMIT_DEFAULT_FROM_ID, NonNegative

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay

_RARE = OMIT_DEFAULT_FROM_ID | ADVANCED
MIN_LENGTH = 1e-12
"""Smallest length of a gradient that is scaled to unit length."""


@dataclass(frozen=True)
class FlatteningConfig:
    """Flattening of the loss around the weights."""

    flatten_weight: NonNegative = field(default=0.0, metadata=_RARE)
    """Weight λ of the divergence between posteriors at the weights and near them; 0: off."""
    flatten_radius: NonNegative = field(default=0.01, metadata=_RARE)
    """Length γ of the step of ascent, relative to the length of each layer's weights."""
    flatten_noise: NonNegative = field(default=0.01, metadata=_RARE)
    """Length ε of the random perturbation, relative to the length of each layer's weights."""


class Flattening(Addition):
    """Adds the gradient of a divergence at perturbed weights, and restores the weights."""

    Config = FlatteningConfig
    switch, switch_value = "flatten_weight", "flatten_weight=1"

    def __init__(self, learner: "Replay") -> None:
        """Refuse methods that replay nothing, have no posterior, or step in their own way."""
        self._refuse(learner)
        self.retrieved: Batch | None = None
        """The replayed samples of the step in progress."""
        learner.rng["flattening"] = generator(learner.problem.seed, "flattening")

    @staticmethod
    def _refuse(learner: "Replay") -> None:
        from sterad.methods.base.replay import Replay  # which imports this module

        cls, switch = type(learner), f"flatten_weight={learner.config.flatten_weight}"
        if not (learner.replays and learner.parts.memory.capacity) or learner.trains != "on-stream":
            raise SteradError(
                f"{switch} flattens around replayed samples, and {cls.__name__} replays none with "
                "the stream here: use a method with a memory, such as er"
            )
        if learner.head_classifier is None:
            raise SteradError(
                f"{switch} needs posteriors of the classes, and the head of {cls.__name__} has "
                "none: use agd-fd or er"
            )
        if cls.step is not Replay.step:
            raise SteradError(
                f"{switch} adds to the gradients of a step, and {cls.__name__} computes its "
                "gradients in its own way: use er or agd-fd"
            )

    @classmethod
    def cost(cls, config: Any, images: int) -> float:
        """Return the cost of a forward pass and two perturbed passes of the replayed samples."""
        return (2 + FORWARD_COST) * float(config.memory_batch)

    def loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> None:
        """Keep the replayed samples; nothing is added to the loss."""
        self.retrieved = retrieved if len(retrieved) else None

    def add_gradients(self, learner: "Replay") -> None:
        """Add the gradient at perturbed weights; weights and buffers are restored to the bit."""
        if (retrieved := self.retrieved) is None:
            return
        self.retrieved = None
        weights = learner.engine.trainable
        before = [weight.detach().clone() for weight in weights]
        try:
            with restored(learner.engine, {}):
                added = self._gradients(learner, retrieved, before)
        finally:
            _set(weights, before)
        for weight, gradient in zip(weights, added, strict=True):
            weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)

    def _gradients(self, learner: "Replay", retrieved: Batch, before: list[Tensor]) -> list[Tensor]:
        """Return the gradient of each weight at θ + δ; zeros without a correct image."""
        engine, config = learner.engine, learner.config
        x = engine.to_device(retrieved.x)

        def posterior() -> Tensor:
            return learner.class_scores(engine.forward([x])).log_softmax(dim=1)

        with torch.no_grad():
            target = posterior()
        is_correct = engine.to_device(learner.seen)[target.argmax(1)] == engine.to_device(
            retrieved.y
        )
        if not bool(is_correct.any()):
            return [torch.zeros_like(one) for one in before]

        def divergence() -> Tensor:
            rows = F.kl_div(posterior(), target, reduction="none", log_target=True).sum(dim=1)
            return rows[is_correct].mean()

        weights, lengths = engine.trainable, [one.norm() for one in before]
        start = self._perturbed(learner, before, lengths)
        _set(weights, start)
        ascent = engine.gradients(divergence())
        for one, length, v in zip(start, lengths, ascent, strict=True):
            one.add_(v * (config.flatten_radius * length / v.norm().clamp_min(MIN_LENGTH)))
        _set(weights, start)
        return engine.gradients(config.flatten_weight * divergence())

    @staticmethod
    def _perturbed(learner: "Replay", weights: list[Tensor], lengths: list[Tensor]) -> list[Tensor]:
        """Return the weights plus normal noise of expected squared length ε² ‖θ‖²."""
        rng, noise = learner.rng["flattening"], learner.config.flatten_noise
        drawn = (torch.randn(one.shape, generator=rng, dtype=one.dtype) for one in weights)
        scales = (n * noise / one.numel() ** 0.5 for one, n in zip(weights, lengths, strict=True))
        triples = zip(weights, map(learner.engine.to_device, drawn), scales, strict=True)
        return [one.mul_(scale).add_(weight) for weight, one, scale in triples]


@torch.no_grad()
def _set(weights: list[torch.nn.Parameter], values: list[Tensor]) -> None:
    for weight, value in zip(weights, values, strict=True):
        weight.copy_(value)
