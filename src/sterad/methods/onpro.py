"""OnPro: prototypes of the batch, contrasted between views, choose which classes are mixed.

Yujie Wei, Jiaxin Ye, Zhizhong Huang, Junping Zhang, Hongming Shan: Online Prototype Learning for
Online Continual Learning. ICCV 2023, https://arxiv.org/abs/2308.00301

R, f, u and V = [R(x); view of R(x)] are those of OCM, S = λ_s (u sᵀ + u uᵀ) with a random slice s
of f; μ_c is the mean u of class c over the images without rotation, scaled to unit length, and
μ'_c that over their views. For each stream batch B:
  1. in the first task: paired_loss(S of B), with λ_s = 1, + prototype_loss(μ, μ' of B)
     + cross-entropy of a view of B;
  2. later, M are min(64, 7 · seen classes) images from memory. A share ρ is drawn at random; each
     is mixed with another one with probability p, x = (1 - λ) x_a + λ x_b, λ uniform in [0, 0.6].
     The others are images of two classes that are close: a pair of classes with probability
     softmax(1 / ‖μ_a - μ_b‖) over pairs, μ from the last step, and with probability p
     λ from Beta(0.4, 0.4), else 0;
  3. paired_loss(S of B) + alike_loss(S of M), where the class of a mixture is the number
     (1 - λ) y_a + λ y_b, + prototype_loss of B + prototype_loss of M
     + (1 - λ) cross-entropy(y_a) + λ cross-entropy(y_b) of a view of M;
  4. step, then offer B to the reservoir.
The first step with a memory in it mixes nothing. λ_s is 1 on CIFAR-100 and 0.5 on CIFAR-10, where
ρ = 0.75 and p = 0.6.

Differences from the released code ("there"), as far as it is known: pairs are drawn independently,
each with its own λ (there the number of each pair is its rounded share, corrected at random);
images of a pair are from a random pool of about a memory batch, equally many of each class; each
random image has its own partner, coin and λ; a mixture belongs to both of its classes in μ, by its
weights; the terms of `losses.mutual_information` differ as in OCM; new tasks may be detected (there
they are announced); predictions are among the classes seen. From OCM: the augmentation.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.losses.mutual_information import alike_loss, paired_loss
from sterad.losses.prototypes import class_means, prototype_loss
from sterad.memory import SlotMemory
from sterad.methods.base.learner import METHODS, Problem
from sterad.methods.base.parts import Parts
from sterad.methods.base.rotated_replay import RotatedReplay, RotatedReplayConfig
from sterad.saved_state import check_labels, check_like
from sterad.seeds import generator
from sterad.streams import Batch
from sterad.torch_private import standard_gamma
from sterad.validation import (
    Positive,
    Share,
)
from sterad.views.geometry import FOLD, sixteenfold

MAX_REPLAYED_PER_CLASS = 7
"""Largest number of images from memory in a step, for each class seen."""
MAX_RANDOM_SHARE = 0.6
"""Largest share of the second image in a random mixture."""
PAIR_ALPHA = 0.4
"""Parameter of the Beta distribution of the second image's share in a pair of classes."""
MIN_DISTANCE = 1e-3
"""Smallest distance between prototypes, whose inverse stays finite."""


@dataclass(frozen=True)
class OnProConfig(RotatedReplayConfig):
    """The released settings of CIFAR-100."""

    lr: Positive = 5e-4
    prototype_temperature: Positive = 0.5
    """Divisor of the cosines between prototypes."""
    similarity_weight: Positive = 1.0
    """λ_s, the factor of the similarities after the first task; CIFAR-10: 0.5."""
    random_share: Share = 0.9
    """ρ, the share of images from memory that are drawn at random; CIFAR-10: 0.75."""
    mixing_probability: Share = 0.2
    """p, the probability that an image is mixed with another one; CIFAR-10: 0.6."""


@METHODS.register("onpro")
class OnPro(RotatedReplay):
    """Contrast of rotated images and of prototypes, and replay of mixtures of close classes."""

    Config = OnProConfig
    config: OnProConfig

    def __init__(self, config: OnProConfig, problem: Problem, parts: Parts) -> None:
        """Start without prototypes; refuse a memory without slots."""
        if not isinstance(parts.memory, SlotMemory):
            raise SteradError(
                f"onpro draws images of chosen classes, and {type(parts.memory).__name__} has no "
                "slots: extend SlotMemory, or use memory_policy=reservoir"
            )
        super().__init__(config, problem, parts)
        self.rng["mixtures"] = generator(problem.seed, "mixtures")
        self.prototypes = next(self.network.parameters()).new_zeros(0, 0)
        """Those of the memory in the last step, 0 for absent classes: (k, d) on the device."""
        self.prototype_classes = torch.zeros(0, dtype=torch.int64)
        """Their classes: (k,)."""

    @classmethod
    def step_cost(cls, config: Any, batch_size: int, replayed: int) -> float:
        """Return the cost of the rotated variants, their views and the classified view."""
        return float(2 * FOLD * (batch_size + replayed) + (replayed or batch_size))

    def retrieve(self, batch: Batch) -> Batch:
        """Return images of the memory, some of them mixed; none in the first task.

        The extra columns are the second label and its share.
        """
        assert self.tasks is not None
        n = min(self.config.memory_batch, MAX_REPLAYED_PER_CLASS * len(self.seen))
        if not self.tasks.finished:
            return self.memory.sample(0)
        if not len(self.prototypes):
            drawn = self.draw(n, batch)
            return _mixture(drawn.x, drawn.x, drawn.y, drawn.y, torch.zeros(len(drawn)))
        classes = self._paired_classes()
        count = n if len(classes) < 2 else int(self.config.random_share * n)
        random = self._mix_at_random(self.draw(count, batch))
        if count == n or len(random) < count:
            return random
        pairs = self._mix_close_classes(classes, n - count)
        if not len(random):
            return pairs
        x, y = torch.cat([random.x, pairs.x]), torch.cat([random.y, pairs.y])
        return Batch(x, y, {k: torch.cat([v, pairs.extra[k]]) for k, v in random.extra.items()})

    def _mix_at_random(self, drawn: Batch) -> Batch:
        """Mix each image with another one with probability p, on the device."""
        rng, drawn = self.rng["mixtures"], Batch(drawn.x, drawn.y)
        partner = torch.randperm(len(drawn), generator=rng)
        share = MAX_RANDOM_SHARE * torch.rand(len(drawn), generator=rng)
        share = share * self._coins(len(drawn))
        rows = drawn.x[partner], drawn.y[partner]
        mixed = _mixture(drawn.x, rows[0], drawn.y, rows[1], share)
        return mixed.to(self.engine.device)

    def _paired_classes(self) -> Tensor:
        """Return the classes that are in memory and may have a prototype, ascending."""
        assert isinstance(self.memory, SlotMemory)
        stored: Tensor = self.memory.labels.unique()
        return stored[torch.isin(stored, self.prototype_classes)]

    def _mix_close_classes(self, classes: Tensor, n: int) -> Batch:
        """Return n images of pairs of classes, on the device: their choice never leaves it."""
        each = max(1, self.config.memory_batch // len(classes))
        x = self.engine.to_device(self._pool(classes, each).x)
        y = self.engine.to_device(classes.repeat_interleave(each))
        at = self.engine.to_device(torch.searchsorted(self.prototype_classes, classes))
        first, second = self._draw_pairs(self.prototypes[at], n)
        turn = self.engine.to_device(torch.arange(n) % each)
        a, b = first * each + turn, second * each + turn
        shape = torch.full((2, n), PAIR_ALPHA, dtype=torch.float64)
        gammas = standard_gamma(shape, self.rng["mixtures"])
        share = self.engine.to_device((gammas[0] / gammas.sum(dim=0)).float() * self._coins(n))
        return _mixture(x[a], x[b], y[a], y[b], share)

    def _pool(self, classes: Tensor, each: int) -> Batch:
        """Return as many random images of each class; those of a small class are repeated."""
        assert isinstance(self.memory, SlotMemory)
        order = torch.randperm(len(self.memory), generator=self.rng["mixtures"])
        labels, by_class = self.memory.labels[order].sort(stable=True)
        start = torch.searchsorted(labels, classes)
        count = torch.searchsorted(labels, classes, right=True) - start
        places = start[:, None] + torch.arange(each) % count[:, None]
        return self.memory.read(order[by_class[places.flatten()]])

    def _draw_pairs(self, means: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Return the positions of both classes of n pairs a < b: (n,) each.

        means: (k, d), 0 for a class without a prototype, which is in a pair if all others are, too.
        """
        k = len(means)
        distance = (means[:, None] - means).square().sum(dim=2).sqrt()
        present = means.square().sum(dim=1) > 0
        usable = present[:, None] & present
        lowest = torch.finfo(means.dtype).min
        scores = torch.where(usable, 1 / distance.clamp_min(MIN_DISTANCE), lowest)
        first, second = torch.triu_indices(k, k, 1, device=means.device)
        noise = torch.rand(n, len(first), generator=self.rng["mixtures"])
        gumbel = self.engine.to_device(-(-noise.clamp_min(1e-20).log()).clamp_min(1e-20).log())
        chosen = (scores[first, second] + gumbel.to(scores)).argmax(dim=1)
        return first[chosen], second[chosen]

    def _coins(self, n: int) -> Tensor:
        """Return 1 with probability p, else 0: (n,)."""
        coins = torch.rand(n, generator=self.rng["mixtures"]) < self.config.mixing_probability
        return coins.float()

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss of the stream batch in the first task, and of both batches later."""
        T, kinds = self.config.temperature, self.kinds(batch).repeat(2)
        stream = _mixture(batch.x, batch.x, batch.y, batch.y, torch.zeros(len(batch)))
        if not len(retrieved):
            ((similarity, prototypes, _),) = self.contrasts([stream])
            classified = F.cross_entropy(*self.forward_views(batch))
            return paired_loss(similarity, kinds, T) + prototypes + classified
        (similarity, new, _), (others, seen, means) = self.contrasts([stream, retrieved])
        self.prototypes, self.prototype_classes = means.detach(), self.seen
        weight, numbers = self.config.similarity_weight, self.numbers(retrieved).repeat(2)
        contrast = paired_loss(weight * similarity, kinds, T)
        contrast = contrast + alike_loss(weight * others, numbers, T)
        return contrast + new + seen + self.classification(retrieved)

    def classification(self, mixed: Batch) -> Tensor:
        """Return the mean cross-entropy of a view of mixtures with both labels."""
        mixed = mixed.to(self.engine.device)
        logits, share = self.engine.forward([self.view(mixed.x)]), mixed.extra["share"]
        first = F.cross_entropy(logits, mixed.y, reduction="none")
        second = F.cross_entropy(logits, mixed.extra["other"], reduction="none")
        return ((1 - share) * first + share * second).mean()

    def numbers(self, mixed: Batch) -> Tensor:
        """Return the labels of the rotated variants; a mixture's is no integer."""
        mixed = mixed.to(self.engine.device)
        share, rotation = mixed.extra["share"], torch.arange(FOLD).repeat_interleave(len(mixed))
        # Interpolation is exact for a share of 0 and for two images of one class.
        number = torch.lerp(mixed.y.to(share), mixed.extra["other"].to(share), share)
        return FOLD * number.repeat(FOLD) + self.engine.to_device(rotation)

    def contrasts(self, batches: list[Batch]) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return S, the prototype loss and the prototypes of each batch, all from one pass."""
        rotated = [sixteenfold(self.engine.to_device(one.x)) for one in batches]
        inputs = [torch.cat([x, self.view(x)]) for x in rotated]
        f, u = self.represent(self.network, torch.cat(inputs))
        sizes = [len(x) for x in inputs]
        results = []
        for batch, f_of, u_of in zip(batches, f.split(sizes), u.split(sizes), strict=True):
            similarity = u_of @ self.slice_of(f_of, u_of).T + u_of @ u_of.T
            results.append((similarity, *self.prototype_loss(batch, u_of)))
        return results

    def prototype_loss(self, mixed: Batch, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return the prototype loss of a batch, and its prototypes over the classes seen."""
        mixed, n = mixed.to(self.engine.device), len(mixed)
        seen, share = self.engine.to_device(self.seen), mixed.extra["share"][:, None].to(u)
        weights = (1 - share) * (mixed.y[:, None] == seen)
        weights = weights + share * (mixed.extra["other"][:, None] == seen)
        first, second = (class_means(z[:n], weights) for z in u.chunk(2))
        temperature = self.config.prototype_temperature
        return prototype_loss(first, second, weights.sum(dim=0) > 0, temperature), first

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, with the prototypes of the last step."""
        own = {"prototypes": self.prototypes, "prototype_classes": self.prototype_classes}
        return super().state_dict() | own

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        check_labels(state["prototype_classes"], "prototype_classes")
        weight = self.network.get_submodule("representation").get_parameter("weight")
        rows = len(state["prototype_classes"])
        like = weight.new_zeros(rows, len(weight) if rows else 0)
        check_like(state["prototypes"], like, "prototypes")
        super().load_state_dict(state)
        self.prototypes = self.engine.to_device(state["prototypes"])
        self.prototype_classes = state["prototype_classes"]


def _mixture(x: Tensor, other: Tensor, y: Tensor, other_y: Tensor, share: Tensor) -> Batch:
    """Return (1 - share) x + share · other, with both labels and the share of the second."""
    weight = share.to(x).view(-1, *[1] * (x.ndim - 1))
    return Batch(torch.lerp(x, other, weight), y, {"other": other_y, "share": share})
