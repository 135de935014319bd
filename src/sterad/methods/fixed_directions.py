"""Fixed directions: what AGD-FD and vMF-FD share.

Nicolas Michel, Giovanni Chierchia, Romain Negrel, Jean-François Bercher: Learning Representations
on the Unit Sphere: Investigating Angular Gaussian and von Mises-Fisher Distributions for Online
Continual Learning. AAAI 2024, https://arxiv.org/abs/2306.03364

For each stream batch B:
  1. retrieve M from memory, X = M ∪ B; no step while the memory is empty;
  2. n random views of X and X itself, each in its own forward pass;
  3. z = unit-length projection; class c has the fixed direction e_c, the c-th basis vector;
  4. step on -Σ log p(y | z), p(c | z) = g(z[c]) / Σ_l g(z[l]), l over the classes of the batch
     and g the density of the law as a function of the cosine;
  5. offer B to the reservoir.
Predictions use the nearest class mean of unit-length encoder features, without the projection.
The ablation of table 3 replaces e_c by the mean of class c in the batch. Other directions are ours:
a regular simplex, a random orthonormal basis, or directions that are trained with the network.
`covariance=shared` gives the angular Gaussian a covariance that is estimated along the stream: see
`methods.base.shared_covariance`.

Differences from the released code ("there"): the density is exact (its series fails for negative
cosines), the projection grows when labels exceed its dimension, `norm_all` sums over seen classes
only, and losses are in float32 whatever the precision of the encoder (there all is float16).
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.devices import to_device
from sterad.encoders import Network
from sterad.errors import SteradError
from sterad.losses.class_posterior import Reduction, likelihood_loss, posterior_loss
from sterad.methods.base.learner import Problem
from sterad.methods.base.optimizers import OptimizerName
from sterad.methods.base.parts import Parts, ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.methods.base.shared_covariance import CovarianceConfig, SharedCovariance
from sterad.saved_state import check_like
from sterad.seeds import generator
from sterad.sphere import (
    LAWS,
    FastLogKernel,
    fast_log_kernel,
    moving_means,
    random_orthonormal,
    regular_simplex,
)
from sterad.streams import Batch
from sterad.validation import OMIT_DEFAULT_FROM_ID, Dimension, Positive, Views

Directions = Literal["basis", "simplex", "orthonormal", "learned", "moving", "moving-mean"]
RETRAIN_EPOCHS = 50
RETRAIN_BATCH_SIZE = 200


@dataclass(frozen=True)
class FixedDirectionsConfig(CovarianceConfig, ReplayConfig):
    """The paper's settings, the same for all of its datasets."""

    lr: Positive = 5e-4
    optimizer: OptimizerName = "adam"
    head: str = "mlp"
    law: str = field(default="angular-gaussian", metadata=OMIT_DEFAULT_FROM_ID)
    """Law on the sphere around each direction: see `sterad list laws`."""
    variance: Positive = 2.0
    """Variance of the law around each direction; the law turns it into a concentration."""
    views: Views = 5
    """Random views of each image beside the raw image."""
    projection: Dimension = 512
    """Dimension of the projection; it grows when a label exceeds it."""
    directions: Directions = "basis"
    """basis vectors, vertices of a regular simplex, a random orthonormal basis, directions that are
    learned (from the basis), or batch means of each class with (moving) or without (moving-mean)
    unit length."""
    objective: Literal["posterior", "likelihood"] = "posterior"
    """posterior contrasts the classes of the batch; likelihood only pulls each image to the
    direction of its class."""
    norm_all: bool = False
    """Use all seen classes in the denominator, not only those of the batch."""
    classifier: str = "nearest-mean"
    """nearest-mean in feature space, or nearest-direction of the projection. Features of a frozen
    encoder do not learn: there nearest-mean would ignore all training, and the nearest direction is
    used in its place."""
    retrain_head: bool = False
    """With nearest-direction: retrain a copy of the head on the memory before each evaluation."""


class FixedDirections(Replay):
    """Pulls unit-length representations to one fixed direction per class."""

    Config = FixedDirectionsConfig
    config: FixedDirectionsConfig
    supervises_stages = True
    trains_without_memory = False
    includes_raw = True
    head_classifier = "nearest-direction"
    allows_preparatory_classes = True

    def __init__(self, config: FixedDirectionsConfig, problem: Problem, parts: Parts) -> None:
        """Refuse combinations of fields that exclude each other."""
        by_direction = config.classifier == self.head_classifier
        adds = ("chain_views", "flatten_weight", "preparatory_classes")
        needs_others = config.teacher != "none" or any(getattr(config, name) > 0 for name in adds)
        needs_all_directions = config.norm_all or needs_others or by_direction
        if config.directions in ("moving", "moving-mean") and needs_all_directions:
            raise SteradError(
                f"directions={config.directions} exist for the classes of a batch only: norm_all, "
                "a teacher, preparatory_classes, chain_views, flattening and nearest-direction "
                "need those of all; use directions=basis"
            )
        if config.retrain_head and not by_direction:
            raise SteradError(
                f"retrain_head has no effect on {config.classifier}, which does not use the head: "
                "use it with classifier=nearest-direction"
            )
        SharedCovariance.check_config(config)
        self.law = LAWS[config.law]
        self.fixed: Tensor | None = None
        """Directions of a simplex or an orthonormal basis: (classes, d) unit rows on the CPU."""
        super().__init__(config, problem, parts)
        if config.directions == "simplex":
            self.fixed = self._make_simplex()
        elif config.directions == "orthonormal":
            self.rng["directions"] = generator(problem.seed, "directions")
            self.fixed = random_orthonormal(self.network.outputs, self.rng["directions"]).cpu()
        self.covariance: SharedCovariance | None = None
        if SharedCovariance.is_on(config):
            self.covariance = SharedCovariance(self)
            self.additions.append(self.covariance)
        self.retrained: nn.Module | None = None
        """Copy of the head that was trained on the memory for the last evaluation."""

    @classmethod
    def default_parts(cls, config: Any, problem: Problem) -> Parts:
        """Let the projection predict if the encoder is frozen and each class has a direction."""
        parts = super().default_parts(config, problem)
        has_directions = config.directions not in ("moving", "moving-mean")
        is_frozen = problem.encoder_options.frozen
        if is_frozen and has_directions and config.classifier == "nearest-mean":
            return replace(parts, classifier=None)
        return parts

    def make_network(self, outputs: int) -> Network:
        """Give the projection its dimension, at least one per declared class."""
        network = super().make_network(max(self.config.projection, outputs))
        if self.config.directions == "learned":
            basis = torch.eye(network.outputs, device=next(network.parameters()).device)
            network.register_parameter("directions", nn.Parameter(basis))
        return network

    def _make_simplex(self) -> Tensor:
        """Return one vertex for each declared class, or as many as the dimension allows.

        Preparatory classes need vertices of no class, so that with them there are as many, too.
        """
        dimension = self.network.outputs
        classes = None if self.config.preparatory_classes else self.problem.classes
        return regular_simplex(classes or dimension + 1, dimension).cpu()

    @property
    def label_count(self) -> int:
        """Number of directions."""
        return super().label_count if self.fixed is None else len(self.fixed)

    def directions_for(self, z: Tensor) -> Tensor | None:
        """Return the direction of each class, (classes, d) unit rows as z; None for the basis."""
        if self.config.directions == "learned":
            return F.normalize(self.network.get_parameter("directions").to(z))
        return None if self.fixed is None else to_device(self.fixed.to(z.dtype), z.device)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss summed over images and views."""
        z, labels = self.representations(Batch.concatenate(retrieved, batch))
        self.record_losses(self.loss_of, z, labels)
        if self.covariance is not None:
            self.covariance.record(z, labels, self.directions_for(z))
        return self.loss_of(z, labels)

    def loss_of(self, z: Tensor, labels: Tensor, reduction: Reduction = "sum") -> Tensor:
        """Return the loss of z: (n, d) unit rows."""
        means, log_density = self.directions_for(z), self.log_density
        if self.config.directions in ("moving", "moving-mean"):
            unit = self.config.directions == "moving"
            means = moving_means(z, self.engine.to_device(labels), self.network.outputs, unit)
        if self.config.objective == "likelihood":
            return likelihood_loss(z, labels, log_density, means, reduction)
        classes = self.classes_beside(labels)
        if (shared := self.covariance) is not None:
            return shared.posterior_loss(z, labels, classes, means, log_density, reduction)
        return posterior_loss(z, labels, log_density, means, classes, reduction=reduction)

    def classes_beside(self, labels: Tensor) -> Tensor | None:
        """Return the classes in the denominator of a loss; None for those among its labels."""
        seen = self.seen if self.config.norm_all else None
        if self.other_labels is None:
            return seen
        labels = self.contrasted(labels)
        classes: Tensor = (labels if seen is None else torch.cat([labels, seen])).unique()
        return classes

    def loss_of_outputs(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of one view, summed over its images."""
        return self.loss_of(F.normalize(outputs), labels)

    def candidate_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each candidate, without views."""
        return self.loss_of(F.normalize(outputs), labels, "none")

    @cached_property
    def log_density(self) -> FastLogKernel:
        """The law's log-density as a function of the cosine with a direction.

        With a shared covariance, the isotropic law with the smallest variance that Σ can have.
        """
        least = 1.0 if self.covariance is None else self.config.covariance_shrinkage
        concentration = self.law.concentration_of(least * self.config.variance)
        return fast_log_kernel(self.law, concentration, self.network.outputs)

    def widen(self, outputs: int) -> None:
        """Grow the projection and the dimension of the law; refuse directions that cannot grow."""
        kind, dimension = self.config.directions, self.network.outputs
        if kind in ("simplex", "learned"):
            raise SteradError(
                f"directions={kind} of {dimension} dimensions cannot grow to {outputs} classes: "
                "give a larger projection, or use directions=basis"
            )
        super().widen(outputs)
        if self.fixed is not None:  # old directions stay, and new ones are orthogonal to them
            more = random_orthonormal(outputs - dimension, self.rng["directions"]).cpu()
            self.fixed = torch.block_diag(self.fixed, more)
        self.__dict__.pop("log_density", None)  # it depends on the dimension

    def distillation_loss(self, target: Tensor, output: Tensor, temperature: float = 4.0) -> Tensor:
        """Return the distillation loss of the posteriors of seen classes, summed over images.

        A sum, as the method's own loss is one: the weight of a distillation is relative to it.
        """
        target = self.class_scores(target).detach()  # learned directions have a gradient
        mean = super().distillation_loss(target, self.class_scores(output), temperature)
        return len(output) * mean

    def class_scores(self, outputs: Tensor) -> Tensor:
        """Return the log-density around the direction of each seen class."""
        z = F.normalize(outputs)
        directions = self.directions_for(z)
        if self.covariance is not None:
            return self.covariance.scores(z, self.seen, directions, self.log_density)
        if directions is None:
            return self.log_density(z[:, self.seen])
        return self.log_density(z @ directions[self.seen].T)

    def consolidate(self) -> None:
        """Fit the classifier, if any; with `retrain_head`, also retrain a copy of the head."""
        super().consolidate()
        if self.config.retrain_head:
            network = self.predictor
            features = self.encoded_memory.encode(self.engine, network)
            self.retrained = retrain_head(network.head, features, self.loss_of, self.config.lr)
            self.engine.drop_gradients()  # those of learned directions

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of the retrained head, if there is one."""
        if (head := self.retrained) is None:
            return super().scores(x)
        scores = self.evaluate(x, lambda net, x: self.class_scores(head(net.features(x)).cpu()))
        return scores, self.seen

    def on_sphere(self, x: Tensor) -> Tensor | None:
        """Return unit-length projections of x, rotated so that directions are the basis."""
        if self.config.directions in ("simplex", "learned"):
            return None
        z = self.evaluate(x, lambda network, x: network(x, unit=True)).cpu()
        return z if self.fixed is None else z @ self.fixed.T

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, with the directions of an orthonormal basis."""
        state = super().state_dict()
        return state if self.fixed is None else state | {"directions": self.fixed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        super().load_state_dict(state)
        if self.fixed is not None:
            check_like(state["directions"], self.fixed, "directions")
            self.fixed = state["directions"]


def retrain_head(
    head: nn.Module,
    features: list[tuple[Tensor, Tensor]],
    objective: Callable[[Tensor, Tensor], Tensor],
    lr: float,
) -> nn.Module:
    """Return a copy of `head` trained on raw features and labels of the memory, in storage order.

    Predictions then come from the projection, not from the encoder. The encoder is frozen and in
    evaluation mode, so its features are computed once and not in each epoch; `objective` takes unit
    rows and labels.
    """
    new_head = deepcopy(head).requires_grad_(True)  # a teacher's head is frozen
    optimizer = torch.optim.Adam(new_head.parameters(), lr=lr)
    # Clones, because autograd refuses tensors made in inference mode.
    h = torch.cat([batch for batch, _ in features]).clone()
    y = torch.cat([labels for _, labels in features]).clone()
    for _ in range(RETRAIN_EPOCHS):
        for batch, labels in zip(
            h.split(RETRAIN_BATCH_SIZE), y.split(RETRAIN_BATCH_SIZE), strict=True
        ):
            optimizer.zero_grad(set_to_none=True)
            objective(F.normalize(new_head(batch)), labels).backward()
            optimizer.step()
    return new_head
