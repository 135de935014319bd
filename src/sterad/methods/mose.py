"""MOSE: an expert at every stage of the network; the last one learns from the others.

Hongwei Yan, Liyuan Wang, Kaisheng Ma, Yi Zhong: Orchestrate Latent Expertise: Advancing Online
Continual Learning with Multi-Level Supervision and Reverse Self-Distillation. CVPR 2024,
https://arxiv.org/abs/2404.00417

An expert at each stage of the encoder has features h_e, a linear classifier p_e and a projection
z_e of unit length. H(X) are the images of X, copies with mirrored halves, and a random view of
both: four of each. For each stream batch B, once there is a memory:
  1. N = B and samples of the current task from memory, half a memory batch in all; in the first
     task B and a whole one;
  2. from the second task on, with r = new / seen classes: Q = the first n = min(⌊64 r⌋, |B|) images
     of B, and min(64 - n, 7 · seen classes) samples of earlier tasks from memory;
  3. step on the sum over experts of the supervised contrastive loss of z_e on H(N ∪ Q), the
     cross-entropy of H(N) among the classes of the task, and 2 · that of H(Q) among those seen,
     + Σ_{e < E} ‖unit(A h_E) - unit(h_e)‖, the Frobenius norm of the difference of all rows, with
     a linear map A and no gradient for h_e;
  4. offer B to the reservoir.
Predictions: the class whose means of unit-length features h_e over the memory are nearest, by the
mean of the squared distances over all experts.

Differences from the released code ("there"), as far as it is known: experts are those of
`encoders.stages`; the left and the right half of an image are each mirrored left to right; N and Q
are in one pass; a class without a sample in memory is never predicted (there its mean is random);
classes and tasks are counted as they appear, so that boundaries may be detected, and if tasks share
classes, a class is new in the first of them only; `classifier=head` is the last expert's. Any
encoder with stages has as many experts. The network is not compiled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from sterad.encoders import Encoder, Network
from sterad.encoders.heads import drawn_again
from sterad.encoders.stages import StageExperts, stage_shapes
from sterad.losses.cross_entropy_among import cross_entropy_among
from sterad.losses.supervised_contrastive import supervised_contrastive_loss
from sterad.methods.base.learner import METHODS
from sterad.methods.base.optimizers import OptimizerName
from sterad.methods.base.task_replay import TaskReplay, TaskReplayConfig, join
from sterad.seeds import use_generator
from sterad.streams import Batch
from sterad.validation import Dimension, NonNegative, Positive, Range
from sterad.views.geometry import mirrored_halves

MAX_EARLIER_PER_CLASS = 7
"""Largest number of samples of earlier tasks in Q, for each class seen."""


@dataclass(frozen=True)
class MOSEConfig(TaskReplayConfig):
    """The released settings."""

    lr: Positive = 1e-3
    optimizer: OptimizerName = "adam"
    weight_decay: NonNegative = 1e-4
    views: Annotated[int, Range(1, 1)] = 1
    """Always 1: each image and its mirrored copy have one random view."""
    projection: Dimension = 128
    """Dimension of each expert's projection."""
    temperature: Positive = 0.07
    """Divisor of the cosines."""
    classifier: str = "nearest-mean"
    """nearest-mean over all experts, or head: the linear classifier of the last one."""


class ExpertEncoder(Encoder):
    """An encoder and the experts on its stages; its features are those of all experts."""

    def __init__(self, encoder: Encoder, experts: StageExperts) -> None:
        """Put the experts on the encoder."""
        super().__init__()
        self.last, self.experts, self.lr = encoder, experts, encoder.lr
        self.features = encoder.features * (1 + len(experts.experts))

    def expert_features(self, x: Tensor) -> list[Tensor]:
        """Return the features of each expert, the last one's last: (n, d)."""
        features: list[Tensor] = self.experts(self.last.stage_outputs(x))
        return features

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of all experts, each of unit length: (n, experts · d).

        So a squared distance is the sum of those of all experts.
        """
        return torch.cat([normalize(h) for h in self.expert_features(x)], dim=1)


class ExpertNetwork(Network):
    """A classifier and a projection for each expert; `forward` returns the last one's logits."""

    encoder: ExpertEncoder

    def __init__(self, encoder: ExpertEncoder, head: nn.Module, projection: int) -> None:
        """Draw the classifiers of the earlier experts like `head`, and the projections."""
        super().__init__(encoder, head)
        experts, width = len(encoder.experts.experts), encoder.last.features
        self.stage_heads = nn.ModuleList(drawn_again(head) for _ in range(experts))
        self.projections = nn.ModuleList(nn.Linear(width, projection) for _ in range(experts + 1))
        self.adapter = nn.Linear(width, width)

    def forward(self, x: Tensor, unit: bool = False, stages: bool = False) -> Tensor:
        """Return the last expert's logits; stages: all columns that `split` separates."""
        if stages:
            return self._forward_stages(x, unit)
        (h,) = self._run(lambda x: [self.encoder.last(x)], x)
        p: Tensor = self.head(h)
        return normalize(p) if unit else p

    def _forward_stages(self, x: Tensor, unit: bool) -> Tensor:
        *earlier, last = features = self._run(self.encoder.expert_features, x)
        heads = zip([*self.stage_heads, self.head], features, strict=True)
        logits = [head(h) for head, h in heads]
        projections = zip(self.projections, features, strict=True)
        z = [normalize(project(h)) for project, h in projections]
        student = normalize(self.adapter(last))
        return torch.cat([*logits, *z, student, *(normalize(h.detach()) for h in earlier)], dim=1)

    def split(self, out: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor, list[Tensor]]:
        """Return logits and projections of each expert, the student, and its targets."""
        experts, width = len(self.projections), self.encoder.last.features
        z = self.projections[0].get_parameter("weight").shape[0]
        sizes = [*[self.outputs] * experts, *[z] * experts, *[width] * experts]
        parts = out.split(sizes, dim=1)
        features = parts[2 * experts :]
        return [*parts[:experts]], [*parts[experts : 2 * experts]], features[0], [*features[1:]]


@METHODS.register("mose")
class MOSE(TaskReplay):
    """Contrast and cross-entropy at every stage, and distillation into the last one."""

    Config = MOSEConfig
    config: MOSEConfig
    trains_without_memory = False
    takes_features = False
    published_views: ClassVar[Mapping[str, Any]] = {
        "flip_probability": 0.0,
        "min_crop": 0.3,
        "jitter_probability": 0.0,
        "gray_probability": 0.25,
    }

    @classmethod
    def step_cost(cls, config: Any, batch_size: int, replayed: int) -> float:
        """Return the cost of N and of a full Q, four times each."""
        new = max(replayed // 2, batch_size)
        return float((2 if config.augmentation == "none" else 4) * (new + replayed))

    def make_network(self, outputs: int) -> Network:
        """Put experts on the stages of the encoder, with classifiers and projections."""
        network = super().make_network(outputs)
        encoder = network.encoder
        shapes = stage_shapes(encoder, self.problem.input_shape)
        rng, like = self.rng["network"], next(network.parameters())
        with use_generator(rng), torch.device(rng.device):
            experts = StageExperts(shapes, encoder.features)
            expert_encoder = ExpertEncoder(encoder, experts)
            made = ExpertNetwork(expert_encoder, network.head, self.config.projection)
        return made.to(like)

    def count_stream(self, batch: Batch) -> int:
        """Return how many images of the stream batch are in Q: none in the first task."""
        return min(self.count_new(self.config.memory_batch), len(batch)) if self.task else 0

    def retrieve(self, batch: Batch) -> Batch:
        """Return the samples of N and of Q that are not in the batch."""
        size = self.config.memory_batch
        if not self.task:
            return self.draw_current(size, batch)
        current = self.draw_current(max(size // 2 - len(batch), 0), batch)
        limit = MAX_EARLIER_PER_CLASS * len(self.seen)
        return join(current, self.draw_earlier(min(size - self.count_stream(batch), limit), batch))

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the sum of the losses of all experts and of the distillation."""
        current, earlier = self.split_tasks(retrieved)
        new = Batch.concatenate(batch, current) if len(current) else batch
        count = self.count_stream(batch)
        replayed = Batch.concatenate(earlier, Batch(batch.x[:count], batch.y[:count]))
        x_n, y_n = self.fourfold(new)
        x_q, y_q = self.fourfold(replayed) if len(replayed) else (x_n[:0], y_n[:0])
        network = self.network
        assert isinstance(network, ExpertNetwork)
        out = self.engine.forward([torch.cat([x_n, x_q])], stages=True)
        logits, z, student, targets = network.split(out)
        labels, classes = torch.cat([y_n, y_q]), self.classes_with(batch.y)
        losses = [supervised_contrastive_loss(one, labels, self.config.temperature) for one in z]
        losses += [cross_entropy_among(one[: len(y_n)], y_n, classes) for one in logits]
        if len(y_q):
            seen = self.engine.to_device(self.seen)
            losses += [2 * cross_entropy_among(one[len(y_n) :], y_q, seen) for one in logits]
        losses += [torch.linalg.matrix_norm(student - target) for target in targets]
        return torch.stack(losses).sum()

    def fourfold(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the images, copies with mirrored halves, a view of both, and all labels."""
        x, y = self.engine.to_device(batch.x), self.engine.to_device(batch.y)
        if x.ndim == 4:
            x = torch.cat([x, mirrored_halves(x)])
        if self.augmentation.changes(x):
            x = torch.cat([x, self.view(x)])
        return x, y.repeat(len(x) // len(y))
