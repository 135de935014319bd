"""Fixed directions: what AGD-FD and vMF-FD share.

Nicolas Michel, Giovanni Chierchia, Romain Negrel, Jean-François Bercher: Learning Representations
on the Unit Sphere: Investigating Angular Gaussian and von Mises-Fisher Distributions for Online
Continual Learning. AAAI 2024, https://arxiv.org/abs/2306.03364

For each stream batch B:
  1. retrieve M from memory, X = M ∪ B; nothing is learned while the memory is empty;
  2. show n random views of X and X itself, each in a forward pass of its own;
  3. z = unit-length projection; class c has the fixed direction e_c, the c-th basis vector;
  4. step on -Σ log p(y | z), p(c | z) = g(z[c]) / Σ_l g(z[l]), l over the classes of the batch;
  5. offer B to the reservoir.
Answers come from the nearest class mean of unit-length encoder features, the head thrown away.
The ablation of table 3 puts the mean of the batch's own class c in the place of e_c.

What differs from the released code: the density is exact (its series fails for negative cosines),
the projection grows when labels exceed its width, `norm_all` sums over seen classes only, and
losses are in single precision whatever the encoder is computed in (there all is half).
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.errors import SteradError
from sterad.losses.posterior import Reduction, likelihood_loss, posterior_loss
from sterad.methods.problem import Problem
from sterad.methods.replay import Replay, ReplayConfig
from sterad.sphere import LogKernel, MeanForm, SphericalLaw, kernel, moving_means
from sterad.streams import Batch
from sterad.validation import Dimension, Positive, Views

RETRAIN_EPOCHS = 50
RETRAIN_BATCH = 200
MOVING: dict[str, MeanForm] = {"moving": "direction", "moving-mean": "mean"}


@dataclass(frozen=True)
class FixedDirectionsConfig(ReplayConfig):
    """The paper's settings, the same for all of its datasets."""

    lr: Positive = 5e-4
    optimizer: Literal["adam", "sgd"] = "adam"
    head: str = "mlp"
    variance: Positive = 2.0
    """Variance of the law around each direction; it determines the concentration."""
    views: Views = 5
    """Number of random views per image, in addition to the image itself."""
    projection: Dimension = 512
    """Dimension of the projection; grows when a label exceeds it."""
    directions: Literal["basis", "moving", "moving-mean"] = "basis"
    """basis vectors, or batch means of each class with (moving) or without (moving-mean) unit
    length."""
    objective: Literal["posterior", "likelihood"] = "posterior"
    """posterior contrasts the classes of the batch; likelihood has no contrast."""
    norm_all: bool = False
    """Use all seen classes in the denominator, not only those of the batch."""
    classifier: str = "nearest-mean"
    """nearest-mean in feature space, or nearest-direction of the projection."""
    retrain_head: bool = False
    """With nearest-direction: retrain the head on the memory before each evaluation."""


class FixedDirections(Replay):
    """Pull unit-length representations to one fixed direction a class under a law on the sphere."""

    Config = FixedDirectionsConfig
    config: FixedDirectionsConfig
    trains_without_memory = False
    includes_raw = True
    head_classifier = "nearest-direction"
    law: ClassVar[type[SphericalLaw]]

    def __init__(self, config: FixedDirectionsConfig, problem: Problem) -> None:
        """Refuse combinations of fields that exclude each other."""
        by_direction = config.classifier == self.head_classifier
        asks = (config.norm_all, config.teacher != "none", by_direction)
        if config.directions != "basis" and any(asks):
            raise SteradError(
                f"directions={config.directions} exist for the classes of a batch only: norm_all, "
                "a teacher and nearest-direction ask for those of all, so use directions=basis"
            )
        if config.retrain_head and config.classifier != "nearest-direction":
            raise SteradError(
                f"retrain_head changes nothing for {config.classifier}, which throws the head "
                "away: use it with classifier=nearest-direction"
            )
        super().__init__(config, problem)
        self.retrained: nn.Module | None = None
        """A copy of the head that was trained on the memory for the last evaluation."""

    def first_outputs(self) -> int:
        """Return the projection's width, at least one dimension a declared class."""
        return max(self.config.projection, self.problem.classes or 1)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss summed over images and views."""
        z, labels = self.representations(Batch.joined(retrieved, batch))
        if self.records_sample_losses:
            self.sample_losses = self.objective(z.detach(), labels, "none"), labels
        return self.objective(z, labels)

    def objective(self, z: Tensor, labels: Tensor, reduction: Reduction = "sum") -> Tensor:
        """Return the loss of z: (n, d) unit rows."""
        means, log_density = None, self.log_density
        if (form := MOVING.get(self.config.directions)) is not None:
            means = moving_means(z, self.engine.to_device(labels), self.network.outputs, form)
        if self.config.objective == "likelihood":
            return likelihood_loss(z, labels, log_density, means, reduction)
        classes = self.seen if self.config.norm_all else None
        return posterior_loss(z, labels, log_density, means, classes, reduction=reduction)

    @cached_property
    def log_density(self) -> LogKernel:
        """The law's log-density as a function of the cosine with a direction."""
        concentration = self.law.concentration_of(self.config.variance)
        return kernel(self.law, concentration, self.network.outputs)

    def widen(self, outputs: int) -> None:
        """Grow the projection, and with it the dimension of the law."""
        super().widen(outputs)
        self.__dict__.pop("log_density", None)

    def distance(self, taught: Tensor, learned: Tensor) -> Tensor:
        """Return the distance of the posteriors over seen classes."""
        return super().distance(self.decide(taught), self.decide(learned))

    def decide(self, p: Tensor) -> Tensor:
        """Return the log-density around the direction of each seen class."""
        return self.log_density(F.normalize(p)[:, self.seen])

    def consolidate(self) -> None:
        """Fit the class means, or retrain a copy of the head, on everything in memory."""
        super().consolidate()
        if self.config.retrain_head:
            head, features = self.answering_network().head, self.remembered()
            self.retrained = retrained_head(head, features, self.objective, self.config.lr)

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of the retrained head, where there is one."""
        if (head := self.retrained) is None:
            return super().scores(x)
        decided = self.ask(x, lambda network, some: self.decide(head(network.features(some)).cpu()))
        return decided, self.seen

    def on_sphere(self, x: Tensor) -> Tensor:
        """Return unit-length projections of x."""
        return self.ask(x, lambda network, some: network(some, unit=True)).cpu()


def retrained_head(
    head: nn.Module,
    features: list[tuple[Tensor, Tensor]],
    objective: Callable[[Tensor, Tensor], Tensor],
    lr: float,
) -> nn.Module:
    """Return a copy of `head` trained on raw features of the memory and labels, in storage order.

    This evaluates the projection without Guillotine regularization. The encoder is frozen and in
    evaluation mode, so its features are computed once and not in each epoch; `objective` takes unit
    rows and labels.
    """
    copied = deepcopy(head).requires_grad_(True)  # a teacher's is frozen
    optimizer = torch.optim.Adam(copied.parameters(), lr=lr)
    # Clones, because autograd refuses tensors that were made in inference mode.
    h = torch.cat([some for some, _ in features]).clone()
    y = torch.cat([labels for _, labels in features]).clone()
    for _ in range(RETRAIN_EPOCHS):
        for some, labels in zip(h.split(RETRAIN_BATCH), y.split(RETRAIN_BATCH), strict=True):
            optimizer.zero_grad(set_to_none=True)
            objective(F.normalize(copied(some)), labels).backward()
            optimizer.step()
    return copied
