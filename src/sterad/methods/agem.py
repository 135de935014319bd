"""A-GEM: steps that, to first order, do not raise the average loss of the memory.

Arslan Chaudhry, Marc'Aurelio Ranzato, Marcus Rohrbach, Mohamed Elhoseiny: Efficient Lifelong
Learning with A-GEM. ICLR 2019, https://arxiv.org/abs/1812.00420

For each stream batch B:
  1. g = gradient of the cross-entropy of a view of B, over all parameters;
  2. once a task has ended: r = the same gradient for a view of M, retrieved from memory;
  3. if g·r < 0: g ← g - (g·r / r·r) r;
  4. step along g, then offer B to the reservoir.
Ends of tasks are announced or, on streams that announce none, detected: see `boundaries`.

What differs from the released code: the logits are raw (there scaled to unit length, which caps
what they can say); on blurry streams every batch is learned from (there only those with a new
class); answers are among the classes seen. From the paper: the memory is a reservoir, and no task
is named when an answer is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.methods.boundaries import BoundaryConfig
from sterad.methods.learner import METHODS
from sterad.methods.replay import Replay, ReplayConfig
from sterad.streams import Batch
from sterad.validation import BelowOne, NonNegative, Positive


@dataclass(frozen=True)
class AGEMConfig(BoundaryConfig, ReplayConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 0.1
    momentum: BelowOne = 0.0
    weight_decay: NonNegative = 1e-4
    head: str = "mlp"


@METHODS.register("agem", alias=("a-gem",))
class AGEM(Replay):
    """Cross-entropy on the stream, its gradient projected so as not to oppose the memory's."""

    Config = AGEMConfig
    reference: Tensor | None = None
    """Loss of the memory, between `loss` and `step`; None while the first task lasts."""

    def retrieve(self, batch: Batch) -> Batch:
        """Return images of the memory, none while the first task lasts."""
        ended = self.tasks is not None and self.tasks.finished > 0
        return super().retrieve(batch) if ended else self.memory.sample(0)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of the stream; the memory's waits for the step."""
        loss = F.cross_entropy(*self.outputs(batch))
        self.reference = F.cross_entropy(*self.outputs(retrieved)) if len(retrieved) else None
        return loss

    def step(self, loss: Tensor) -> None:
        """Move against the projected gradient of `loss`."""
        if self.reference is None:
            return super().step(loss)
        reference = self.engine.gradients(self.reference)
        gradient = self.engine.gradients(loss)
        along_each = projected(gradient, reference)
        for parameter, along in zip(self.engine.trainable, along_each, strict=True):
            parameter.grad = along
        self.reference = None
        self.descend()


def projected(gradient: Sequence[Tensor], reference: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the gradient without what opposes the reference: tensors of the same shapes.

    >>> projected([torch.tensor([1.0, 2.0])], [torch.tensor([-1.0, 0.0])])
    [tensor([0., 2.])]
    """
    product, square = _dot(gradient, reference), _dot(reference, reference)
    # Squares of tiny gradients may be 0: nothing to divide by. Decided where the gradients are.
    opposes = (product < 0) & (square > 0)
    against = torch.where(opposes, product / square, torch.zeros_like(product))
    return [g - against * r for g, r in zip(gradient, reference, strict=True)]


def _dot(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    return torch.stack([(a * b).sum() for a, b in zip(first, second, strict=True)]).sum()
