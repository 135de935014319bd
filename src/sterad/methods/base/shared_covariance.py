"""A covariance that all classes share, estimated along the stream: future work of AGD-FD's paper.

Class c has the law of the direction of X ~ N(e_c, Σ), `sterad.sphere.GeneralAngularGaussian`, in
place of N(e_c, σ²I). With Σ = LLᵀ, W = L⁻¹, u = Wz/|Wz| and λ_c = |W e_c|,

    log f_c(z) = h(z) - λ_c²/2 + log E[exp(R uᵀW e_c)],  R ~ χ_d,

where h(z) is the same for all classes: the isotropic law of the whitened row, around the whitened
directions. After each step, with all rows z_i of its loss and without a gradient:
  1. S ← βS + (1 - β) mean_i (z_i - e_y)(z_i - e_y)ᵀ, at first S = (2/d) I;
  2. every REFRESH_STEPS steps Σ = σ² [(1 - ρ) (tr S / tr S²) S + ρI], and W from its factor L.

S is the maximum likelihood estimate of Σ if the radii |X|, which are not observed, are all 1: exact
to first order in Σ. The exact likelihood is not maximized, because it has no maximum while all rows
are near one axis, as they are in the first steps.

Identifiability: N(ke_c, k²Σ) has the same direction for all k > 0, so that with |e_c| = 1 the scale
of Σ is the concentration of the law. `variance` σ² keeps this role, of a temperature that the data
do not give, and the stream gives the shape, with tr(ΣS) = σ² tr S: the mean variance in the
direction of a deviation z - e_y is σ², as for σ²I. The mean over all coordinates, tr S/d, would be
a poor unit, as rows deviate in few of the projection's.
ρ > 0 bounds Σ from below, λ_c by 1/(σ√ρ), and the condition number by d/ρ.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.devices import to_device, to_double
from sterad.errors import SteradError
from sterad.losses.class_posterior import Reduction, posterior_loss_of_scores
from sterad.methods.base.additions import Addition
from sterad.methods.base.parts import PositiveShare
from sterad.saved_state import check_count, check_like
from sterad.sphere import AngularGaussian, FastLogKernel
from sterad.sphere.law import LAWS
from sterad.streams import Batch
from sterad.validation import ADVANCED, OMIT_DEFAULT_FROM_ID, BelowOne

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay
    from sterad.methods.fixed_directions import FixedDirections, FixedDirectionsConfig

_RARE = OMIT_DEFAULT_FROM_ID | ADVANCED
REFRESH_STEPS = 10
"""Steps between Cholesky factorizations, each of which takes 10 to 20 ms in 512 dimensions. A tenth
of the estimate changes meanwhile."""


@dataclass(frozen=True)
class CovarianceConfig:
    """The covariance of the law around each direction."""

    covariance: Literal["isotropic", "shared"] = field(
        default="isotropic", metadata=OMIT_DEFAULT_FROM_ID
    )
    """isotropic: σ²I; shared: a covariance of all classes that is estimated along the stream."""
    covariance_momentum: BelowOne = field(default=0.99, metadata=_RARE)
    """shared: momentum β of the scatter of the rows around their directions."""
    covariance_shrinkage: PositiveShare = field(default=0.5, metadata=_RARE)
    """shared: weight ρ of σ²I, in (0, 1]; 1 is the isotropic law."""


class SharedCovariance(Addition):
    """The scatter of the rows around their directions, and the whitening that follows from it."""

    Config = CovarianceConfig
    switch, switch_value = "covariance", "covariance=shared"

    def __init__(self, learner: "FixedDirections") -> None:
        """Start with the isotropic law."""
        config: FixedDirectionsConfig = learner.config
        self.variance, self.shrinkage = config.variance, config.covariance_shrinkage
        self.momentum = config.covariance_momentum
        weight = next(learner.network.parameters())
        eye = torch.eye(learner.network.outputs, dtype=weight.dtype, device=weight.device)
        self.scatter = 2 / len(eye) * eye  # the trace of rows orthogonal to their directions
        self.whitening = eye / self.variance**0.5
        """W: (d, d), with Wᵀ W = Σ⁻¹."""
        self.steps = 0
        self.deviations: Tensor | None = None
        """z - e_y of the step in progress: (n, d)."""

    @classmethod
    def check_config(cls, config: "FixedDirectionsConfig") -> None:
        """Refuse fields without effect, and those that a shared covariance has no meaning for."""
        cls.check_fields(config)
        if not cls.is_on(config):
            return
        if LAWS[config.law] is not AngularGaussian:
            raise SteradError(
                f"covariance=shared is that of a Gaussian vector, and the law is {config.law}: use "
                "law=angular-gaussian, or covariance=isotropic"
            )
        if config.directions in ("moving", "moving-mean"):
            raise SteradError(
                f"covariance=shared is estimated around directions that stay, and those of "
                f"directions={config.directions} are means of each batch: use directions=basis"
            )
        if config.objective == "likelihood":
            raise SteradError(
                "covariance=shared raises the likelihood of rows that are all on one axis, which "
                "the covariance then follows, whatever their classes: use objective=posterior"
            )

    def before_loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> None:
        """Drop the rows of a loss without a step, such as that of a retrieval."""
        self.deviations = None

    def record(self, z: Tensor, labels: Tensor, directions: Tensor | None) -> None:
        """Keep the deviations of the first loss of a step; later ones are those of early stages."""
        if self.deviations is not None:
            return
        index = to_device(labels, z.device)
        means = F.one_hot(index, z.shape[1]) if directions is None else directions.detach()[index]
        self.deviations = z.detach() - means

    @torch.no_grad()
    def after_step(self, learner: "Replay") -> None:
        """Update the scatter, and at times the whitening."""
        if (rows := self.deviations) is None:
            return
        self.deviations, weight = None, (1 - self.momentum) / len(rows)
        rows = rows.to(self.scatter.dtype)
        self.scatter.addmm_(rows.T, rows, beta=self.momentum, alpha=weight)
        self.steps += 1
        if self.steps % REFRESH_STEPS == 0:
            self.refresh()

    @property
    def covariance(self) -> Tensor:
        """Σ of the scatter so far: (d, d) float64."""
        scatter, rho = to_double(self.scatter), self.shrinkage
        # tr S² is the squared Frobenius norm. S is 0 only if no row ever deviated.
        scale = scatter.trace() / scatter.square().sum().clamp_min(1e-300)
        eye = torch.eye(len(scatter), dtype=scatter.dtype, device=scatter.device)
        return self.variance * ((1 - rho) * scale * scatter + rho * eye)

    def refresh(self) -> None:
        """Compute the whitening of the scatter so far."""
        covariance = self.covariance
        if not bool(torch.isfinite(covariance).all()):
            raise SteradError(
                "the representations are NaN or infinite, so that they have no covariance: train "
                "with a smaller lr, or with clip"
            )
        factor = torch.linalg.cholesky(covariance)
        eye = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
        self.whitening = torch.linalg.solve_triangular(factor, eye, upper=False).to(self.scatter)

    def terms(
        self, like: Tensor, classes: Tensor, directions: Tensor | None, limit: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return W, the whitened directions by the largest λ, and the constants of the classes.

        like: for dtype and device; directions: (C, d) or None for the basis; limit: the largest λ.
        Shapes: (d, d), (k, d), (k,).
        """
        whitening = to_device(self.whitening.to(like.dtype), like.device)
        index = to_device(classes, like.device)
        means = whitening.T[index] if directions is None else directions[index] @ whitening.T
        return whitening, means / limit, (limit**2 - means.square().sum(1)) / 2

    def scores(
        self, z: Tensor, classes: Tensor, directions: Tensor | None, log_density: FastLogKernel
    ) -> Tensor:
        """Return log f_c(z) - h(z) for some classes: (n, k).

        log_density: that of an isotropic law with the largest λ as its concentration.
        """
        limit = log_density.concentration
        whitening, means, constants = self.terms(z, classes, directions, limit)
        return log_density(F.normalize(z @ whitening.T) @ means.T) + constants

    def posterior_loss(
        self,
        z: Tensor,
        labels: Tensor,
        classes: Tensor | None,
        directions: Tensor | None,
        log_density: FastLogKernel,
        reduction: Reduction,
    ) -> Tensor:
        """Return minus the log posterior among `classes`, by default those of the labels."""
        labels = labels.cpu()
        classes = labels.unique() if classes is None else classes
        scores = self.scores(z, classes, directions, log_density)
        columns, targets = torch.arange(len(classes)), torch.searchsorted(classes, labels)
        return posterior_loss_of_scores(scores, targets, columns, reduction=reduction)

    def widen(self, learner: "Replay") -> None:
        """Give new dimensions the mean variance in the direction of a deviation, σ² in Σ."""
        new = learner.network.outputs - len(self.scatter)
        unit = self.scatter.square().sum() / self.scatter.trace()
        more = torch.eye(new, dtype=self.scatter.dtype, device=self.scatter.device)
        self.scatter = torch.block_diag(self.scatter, unit * more)
        self.refresh()

    def state_dict(self) -> dict[str, Any]:
        """Return the scatter, the whitening in use and the number of updates."""
        return {"scatter": self.scatter, "whitening": self.whitening, "steps": self.steps}

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state fits the projection."""
        check_like(state, self.state_dict(), "covariance")
        check_count(state["steps"], "covariance.steps")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        # Copied, because the scatter is updated in place.
        self.scatter.copy_(state["scatter"])
        self.whitening, self.steps = state["whitening"].to(self.scatter).clone(), state["steps"]
