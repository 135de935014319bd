"""CCL-DC: two networks that learn together, and teach each other from hard to easy views.

Maorong Wang, Nicolas Michel, Ling Xiao, Toshihiko Yamasaki: Improving Plasticity in Online
Continual Learning via Collaborative Learning. CVPR 2024, https://arxiv.org/abs/2312.00600

Two networks P and O differ in their first weights alone. With ER as the base, for each stream
batch B:
  1. retrieve M from memory, X = M ∪ B; no step while the memory is empty;
  2. draw a view V of X, and the chain x_0 = X, x_1 = a crop and flip of x_0,
     x_2 = RandAugment(x_1), x_3 = RandAugment(x_2);
  3. the loss of P is ½ [CE(P(V)) + Σ_j CE(P(x_j))]
     + λ [KL(O(x_1) ‖ P(x_0)) + KL(O(x_2) ‖ P(x_1)) + KL(O(x_3) ‖ P(x_2)) + KL(O(x_3) ‖ P(x_3))],
     λ = 2, where O has no gradient and KL is T² times the divergence at temperature T = 4;
  4. the same for O with P; each takes a step of its own;
  5. offer B to the reservoir.
Predictions come from the mean of both logits (`ensemble`), or from P. Both cost five passes of each
image: report it beside the accuracy. One network can distill like this: see `chain_views`.

Both networks are one here, with two encoders and two heads, and have one optimizer: AdamW changes
each weight by itself, so that this equals one for each; only `clip` limits the norm of both
together. A classifier that is fitted to features gets those of both.

Differences from the released code: each image has random operations of its own (there one policy
for a batch); predictions are among the classes seen; the network is that of the run (there a
ResNet-18 of width 64).
"""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network, carry_over
from sterad.encoders.peers import PeerHeads, join_peers
from sterad.errors import SteradError
from sterad.methods.base.chain import DistillationChain, sum_of
from sterad.methods.base.learner import METHODS, Cost, Problem
from sterad.methods.base.optimizers import OptimizerName
from sterad.methods.base.parts import ADDITIONS, Parts, ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.validation import ADVANCED, NonNegative, Positive, Range


@dataclass(frozen=True)
class CCLDCConfig(ReplayConfig):
    """The released settings with ER on CIFAR; Tiny ImageNet has operations 1 and magnitude 11."""

    lr: Positive = 5e-4
    optimizer: OptimizerName = "adamw"
    weight_decay: NonNegative = 1e-4
    views: Annotated[int, Range(1, 1)] = 1
    """Always 1: the base loss takes one random view."""
    chain_views: Annotated[int, Range(1, 10)] = field(default=3, metadata=ADVANCED)
    """Views of growing strength beside the images."""
    chain_weight: NonNegative = field(default=2.0, metadata=ADVANCED)
    """Weight λ of the distillation between the networks."""
    ensemble: bool = True
    """Predict by the mean of both logits, or by those of the first network."""


@METHODS.register("ccl-dc")
class CCLDC(Replay):
    """Cross-entropy of two networks, each distilled to the other from hard to easy views."""

    Config = CCLDCConfig
    config: CCLDCConfig
    trains_without_memory = False
    takes_features = False
    own_additions = (DistillationChain,)
    allows_preparatory_classes = True

    def __init__(self, config: CCLDCConfig, problem: Problem, parts: Parts) -> None:
        """Refuse a teacher beside the peer."""
        if config.teacher != "none":
            raise SteradError(
                "the networks of ccl-dc teach each other and have no other teacher: leave "
                "teacher=none, or use mkd"
            )
        super().__init__(config, problem, parts)

    @classmethod
    def step_cost(cls, config: Any, batch_size: int, replayed: int) -> float:
        """Return the cost of the base view in both networks."""
        return 2 * super().step_cost(config, batch_size, replayed)

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return the cost with all additions in both networks, and the memory encoded by both."""
        one = super().cost(config, batch_size, memory, samples)
        images = batch_size + config.memory_batch
        additions = [addition for addition in ADDITIONS if addition.is_on(config)]
        added = sum(addition.cost(config, images) for addition in additions)
        step = one.step + added * config.memory_iterations
        return replace(one, step=step, consolidation=2 * one.consolidation)

    def make_network(self, outputs: int) -> Network:
        """Join two networks with different first weights."""
        first = super().make_network(outputs)
        return join_peers(first, super().make_network(outputs))

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the sum of the losses of both networks."""
        joined = Batch.concatenate(retrieved, batch)
        x, labels = (self.engine.to_device(one) for one in (joined.x, joined.y))
        chain = next(one for one in self.additions if isinstance(one, DistillationChain))
        views = [self.view(x), *chain.views_of(self, x)]
        pair = [one.chunk(len(views)) for one in self.forward_both(views)]
        losses = []
        for own, other in (pair, pair[::-1]):
            cross_entropies = sum_of([F.cross_entropy(one, labels) for one in own])
            harder = [*other[2:], other[-1]]
            losses.append(self.config.chain_view_loss * cross_entropies)
            losses.append(self.config.chain_weight * chain.distances(self, harder, own[1:]))
        return sum_of(losses)

    def forward_both(self, views: list[Tensor]) -> tuple[Tensor, ...]:
        """Return the outputs of both networks for all views, one pass per view."""
        return self.engine.forward(views).chunk(2, dim=1)

    def virtual_loss(self, batch: Batch) -> Tensor:
        """Return the cross-entropy of both networks for a view of the stream batch."""
        x, labels = self.stack_views(batch)
        return sum_of([F.cross_entropy(one, labels) for one in self.forward_both([x])])

    def loss_of_outputs(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the cross-entropy of both networks for one view."""
        both = outputs.chunk(2, dim=1)
        return sum_of([super(CCLDC, self).loss_of_outputs(one, labels) for one in both])

    def class_scores(self, outputs: Tensor) -> Tensor:
        """Return the mean of both logits of the seen classes, or those of the first network."""
        first, second = outputs.chunk(2, dim=1)
        return super().class_scores((first + second) / 2 if self.config.ensemble else first)

    def widen(self, outputs: int) -> None:
        """Grow both heads."""
        heads = self.network.head
        assert isinstance(heads, PeerHeads)
        carry_over(self.engine.optimizer, heads.grow(outputs, self.rng["network"]))
        super().widen(outputs)
