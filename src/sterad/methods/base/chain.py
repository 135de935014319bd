"""The distillation chain: views of growing strength, each of which teaches the next easier one.

Maorong Wang, Nicolas Michel, Ling Xiao, Toshihiko Yamasaki: Improving Plasticity in Online
Continual Learning via Collaborative Learning. CVPR 2024, https://arxiv.org/abs/2312.00600

Here with one network S; the paper has two, see the method `ccl-dc`. With the images of memory and
stream x_0, a crop and flip x_1 of x_0, and x_j = RandAugment(x_j-1) for j > 1, add to the method's
loss ℓ:

    w Σ_{j ≥ 0} ℓ(S(x_j)) + λ Σ_{j ≥ 1} KL(S(x_j) ‖ S(x_j-1)),

where S(x_j) has no gradient in the divergence, which is T² times the one at temperature T.

Differences from the released code: each image has operations of its own (there one policy for a
batch), on floats and not on bytes. Feature vectors have no crops: each of their views is one of the
view before by the method's augmentation, such as noise. SCR distills cosines, fixed directions the
posteriors of the seen classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.base.additions import Addition, join
from sterad.seeds import generator
from sterad.streams import Batch
from sterad.validation import (
    ADVANCED,
    OMIT_DEFAULT_FROM_ID,
    Count,
    NonNegative,
    Positive,
    Range,
)
from sterad.views import geometry
from sterad.views.rand_augment import Magnitude, RandAugment

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay

MIN_CROP = 0.6
"""Minimum area of the crop, as a fraction of the image."""
_ADDED = ADVANCED | OMIT_DEFAULT_FROM_ID


@dataclass(frozen=True)
class ChainConfig:
    """Self-distillation from hard to easy views."""

    chain_views: Annotated[int, Range(0, 10)] = field(default=0, metadata=_ADDED)
    """Views of growing strength beside the images, each distilled to the next easier one; 0: none,
    published: 3."""
    chain_weight: NonNegative = field(default=1.0, metadata=_ADDED)
    """Weight λ of the distillation between the views."""
    chain_view_loss: NonNegative = field(default=0.5, metadata=_ADDED)
    """Weight w of the method's own loss on each view of the chain."""
    chain_temperature: Positive = field(default=4.0, metadata=_ADDED)
    """Temperature of the posteriors that are distilled between the views."""
    chain_operations: Count = field(default=3, metadata=_ADDED)
    """Random operations from each view to the next."""
    chain_magnitude: Magnitude = field(default=15, metadata=_ADDED)
    """Strength of the random operations, from 0 to 30."""


class DistillationChain(Addition):
    """Adds the method's own loss on views of growing strength, and distills each to the next."""

    Config = ChainConfig
    switch, switch_value = "chain_views", "chain_views=3"

    def __init__(self, learner: "Replay") -> None:
        """Refuse inputs that have no harder views."""
        shape, config = learner.problem.input_shape, learner.config
        if len(shape) == 3 and shape[0] not in (1, 3):
            raise SteradError(
                f"chain_views changes colors, and images of {shape[0]} channels have none: give "
                "images of 1 or 3 channels, or leave chain_views=0"
            )
        if len(shape) == 1 and not learner.augmentation.changes(torch.empty(0, *shape)):
            raise SteradError(
                f"chain_views needs views, and inputs of shape {shape} have none with "
                f"augmentation={config.augmentation}: use augmentation=noise, or leave "
                "chain_views=0"
            )
        learner.rng["chain"] = generator(learner.problem.seed, "chain")
        self.harder = RandAugment(
            operations=config.chain_operations, magnitude=config.chain_magnitude
        )

    @classmethod
    def cost(cls, config: Any, images: int) -> float:
        """Return the cost of the images and their views."""
        return float((config.chain_views + 1) * images)

    def loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss of all views and the distillation between them."""
        joined = join(retrieved, batch)
        views = self.views_of(learner, learner.engine.to_device(joined.x))
        outputs = learner.engine.forward(views).chunk(len(views))
        losses = [learner.loss_of_outputs(one, joined.y) for one in outputs]
        distances = self.distances(learner, outputs[1:], outputs[:-1])
        config = learner.config
        return config.chain_view_loss * sum_of(losses) + config.chain_weight * distances

    def views_of(self, learner: "Replay", x: Tensor) -> list[Tensor]:
        """Return images on the device and their views, from the easiest to the hardest."""
        views = [x, self.easiest(learner, x)]
        while len(views) <= learner.config.chain_views:
            views.append(self.next_harder(learner, views[-1]))
        return views

    def easiest(self, learner: "Replay", x: Tensor) -> Tensor:
        """Return a random crop of each image, some of which are flipped."""
        if x.ndim == 2:
            return self.next_harder(learner, x)
        (n, _, h, w), rng = x.shape, learner.rng["chain"]
        boxes = geometry.draw_boxes(n, h, w, rng, MIN_CROP)
        flips = geometry.draw_chosen(n, 0.5, rng) if learner.problem.flip else None
        return learner.engine.to_device(geometry.resized_crop(x, boxes, flips))

    def next_harder(self, learner: "Replay", x: Tensor) -> Tensor:
        """Return a view of a view."""
        augmentation = learner.augmentation if x.ndim == 2 else self.harder
        return learner.engine.to_device(augmentation(x, learner.rng["chain"]))

    def distances(
        self, learner: "Replay", harder: Sequence[Tensor], easier: Sequence[Tensor]
    ) -> Tensor:
        """Return the sum of the divergences from outputs of harder views to those of easier ones.

        The outputs of the harder views get no gradient.
        """
        temperature = learner.config.chain_temperature
        pairs = zip(harder, easier, strict=True)
        return sum_of([learner.distillation_loss(h.detach(), e, temperature) for h, e in pairs])


def sum_of(losses: Sequence[Tensor]) -> Tensor:
    """Return the sum of scalars."""
    return torch.stack([*losses]).sum()
