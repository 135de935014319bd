"""Supervision of every stage: the method's loss on the outputs of each stage of the encoder.

After Hongwei Yan, Liyuan Wang, Kaisheng Ma, Yi Zhong: Orchestrate Latent Expertise: Advancing
Online Continual Learning with Multi-Level Supervision and Reverse Self-Distillation. CVPR 2024,
https://arxiv.org/abs/2404.00417

Each stage but the last has an expert (see `encoders.stages`) and a head like the network's, with
weights of its own: fixed directions are the same at every stage. For outputs p_1, ..., p_E of the
stages, all from one pass, this adds

    stage_weight · Σ_{e < E} [ loss(p_e) + stage_distillation · distillation(p_E, p_e) ]

to loss(p_E), where the distillation is the one that a teacher of the method uses, from p_E without
gradient. Predictions use the last stage. Differences from MOSE, which is a method of its own: any
replay method's loss; distillation from the last to the earlier stages (there into the last one).

The loss is computed again on the outputs of each stage, with the same views: nothing else passes
the encoder. Networks with stages are not compiled: see `Network.compile_encoder`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sterad.encoders import Network
from sterad.encoders.heads import drawn_again
from sterad.encoders.stages import StageExperts, stage_shapes
from sterad.engine.engine import StagePasses
from sterad.errors import SteradError
from sterad.methods.base.additions import Addition
from sterad.seeds import generator, use_generator
from sterad.streams import Batch
from sterad.validation import ADVANCED, OMIT_DEFAULT_FROM_ID, NonNegative
from sterad.views.augmentations import Augmentation, NoAugmentation

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay

_RARE = ADVANCED | OMIT_DEFAULT_FROM_ID


@dataclass(frozen=True)
class StageConfig:
    """Training of every stage of the encoder."""

    stage_weight: NonNegative = field(default=0.0, metadata=_RARE)
    """Weight of the loss at each earlier stage of the encoder; 0: only the last one has a loss."""
    stage_distillation: NonNegative = field(default=1.0, metadata=_RARE)
    """Weight of the distillation from the last stage to each earlier one, relative to the loss
    there."""


class StageSupervision(Addition):
    """Adds the losses of the earlier stages; their experts are part of the network."""

    Config = StageConfig
    switch, switch_value = "stage_weight", "stage_weight=1"

    @classmethod
    def extend_network(cls, learner: "Replay", network: Network) -> None:
        """Add an expert and a head to each stage, drawn from a generator of their own."""
        method = type(learner)
        if not method.supervises_stages:
            raise SteradError(
                f"stage_weight={learner.config.stage_weight} computes the loss of a method again "
                f"on each stage, which that of {method.__name__} does not allow: use er, scr or "
                "agd-fd, for example, or stage_weight=0"
            )
        learner.rng["stages"] = rng = generator(learner.problem.seed, "stages")
        weight = next(network.parameters())
        shapes = stage_shapes(network.encoder, learner.problem.input_shape)
        with use_generator(rng), torch.device(rng.device):
            experts = StageExperts(shapes, network.encoder.features)
            heads = [drawn_again(network.head) for _ in shapes]
        network.add_stages(experts.to(weight), [head.to(weight) for head in heads])

    def before_loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> None:
        """Keep the outputs of all stages in the passes of the method's loss."""
        learner.engine.stage_passes = StagePasses()

    def loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> Tensor | None:
        """Return the weighted sum of the losses of the earlier stages."""
        passes, learner.engine.stage_passes = learner.engine.stage_passes, None
        assert passes is not None
        losses = []
        for stage in range(1, 1 + len(learner.network.stage_heads)):
            with _replayed(learner, passes, stage):
                losses.append(learner.loss(retrieved, batch))
            if learner.config.stage_distillation:
                losses.append(learner.config.stage_distillation * _distance(learner, passes, stage))
        return learner.config.stage_weight * torch.stack(losses).sum()


def _distance(learner: "Replay", passes: StagePasses, stage: int) -> Tensor:
    """Return the distillation loss from the last stage to another one, over all passes."""
    last = torch.cat([one[0].detach() for one in passes.outputs])
    return learner.distillation_loss(last, torch.cat([one[stage] for one in passes.outputs]))


@contextmanager
def _replayed(learner: "Replay", passes: StagePasses, stage: int) -> Iterator[None]:
    """Let passes return the outputs of a stage, whatever the views are."""
    augmentation, recorded = learner.augmentation, learner.sample_losses
    learner.augmentation, learner.sample_losses = _SameImages(original=augmentation), None
    passes.select(stage)
    learner.engine.stage_passes = passes
    try:
        yield
    finally:
        learner.augmentation, learner.sample_losses = augmentation, recorded
        learner.engine.stage_passes = None


@dataclass(frozen=True)
class _SameImages(Augmentation):
    """As many views as with another augmentation; nothing is drawn or computed."""

    original: Augmentation = field(default_factory=NoAugmentation)

    def changes(self, x: Tensor) -> bool:
        return self.original.changes(x)

    def __call__(self, x: Tensor, rng: torch.Generator) -> Tensor:
        return x

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        return x
