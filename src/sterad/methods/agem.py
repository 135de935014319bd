"""A-GEM: steps that do not increase the average loss of the memory to first order.

Arslan Chaudhry, Marc'Aurelio Ranzato, Marcus Rohrbach, Mohamed Elhoseiny: Efficient Lifelong
Learning with A-GEM. ICLR 2019, https://arxiv.org/abs/1812.00420

For each stream batch B:
  1. g = gradient of the cross-entropy of a view of B, over all parameters;
  2. once a task has ended: r = the same gradient for a view of M, retrieved from memory;
  3. if g·r < 0: g ← g - (g·r / r·r) r;
  4. step along g, then offer B to the reservoir.
Ends of tasks are announced or, on streams that announce none, detected: see `base/boundaries`.

Differences from the released code ("there"): logits are raw unless `unit_logits` is set (there
scaled to unit length, which bounds the posteriors); on blurry streams there is a step on every
batch (there only on those with a new class); predictions are among the classes seen. From the
paper: the memory is a reservoir, and predictions do not know the task.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.methods.base.boundaries import BoundaryConfig
from sterad.methods.base.learner import METHODS
from sterad.methods.base.parts import ReplayConfig, UnitLogitsConfig
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.validation import BelowOne, NonNegative, Positive


@dataclass(frozen=True)
class AGEMConfig(UnitLogitsConfig, BoundaryConfig, ReplayConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 0.1
    momentum: BelowOne = 0.0
    weight_decay: NonNegative = 1e-4
    head: str = "mlp"


@METHODS.register("agem", alias=("a-gem",))
class AGEM(Replay):
    """Cross-entropy on the stream, with its gradient projected not to oppose the memory's."""

    Config = AGEMConfig
    reference: Tensor | None = None
    """Loss of the memory, from `loss` to `step`; None in the first task."""

    def retrieve(self, batch: Batch) -> Batch:
        """Return images of the memory; none in the first task."""
        ended = self.tasks is not None and self.tasks.finished > 0
        return super().retrieve(batch) if ended else self.memory.sample(0)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of the stream batch; `step` uses that of the memory."""
        loss = F.cross_entropy(*self.forward_views(batch))
        self.reference = F.cross_entropy(*self.forward_views(retrieved)) if len(retrieved) else None
        return loss

    def step(self, loss: Tensor) -> None:
        """Take a step with the projected gradient of `loss`."""
        if self.reference is None:
            return super().step(loss)
        reference = self.engine.gradients(self.reference)
        gradient = self.engine.gradients(loss)
        projected = project(gradient, reference)
        for parameter, grad in zip(self.engine.trainable, projected, strict=True):
            parameter.grad = grad
        self.reference = None
        self.engine.step(self.config.clip)


def project(gradient: Sequence[Tensor], reference: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the gradient without its component against the reference: tensors of the same shapes.

    >>> project([torch.tensor([1.0, 2.0])], [torch.tensor([-1.0, 0.0])])
    [tensor([0., 2.])]
    """
    product, square = _dot(gradient, reference), _dot(reference, reference)
    # The square of tiny gradients may be 0. `where` avoids a synchronization with the device.
    opposes = (product < 0) & (square > 0)
    against = torch.where(opposes, product / square, torch.zeros_like(product))
    return [g - against * r for g, r in zip(gradient, reference, strict=True)]


def _dot(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    return torch.stack([(a * b).sum() for a, b in zip(first, second, strict=True)]).sum()
