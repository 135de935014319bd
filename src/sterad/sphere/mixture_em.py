"""Expectation-maximization of a mixture of laws on the sphere, in chunks of rows.

A. Banerjee, I. S. Dhillon, J. Ghosh and S. Sra, "Clustering on the Unit Hypersphere using von
Mises-Fisher Distributions", JMLR 6, 2005: soft and hard assignments, here for any law.
"""

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere.angular_central_gaussian import AngularCentralGaussian
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.fit import Fit
from sterad.sphere.quadrature import log_area
from sterad.sphere.rotational_law import RotationalLaw
from sterad.sphere.rows import Rows
from sterad.sphere.seeding import choose_centers
from sterad.sphere.von_mises_fisher import VonMisesFisher
from sterad.sphere.watson import Watson

AXIAL_LAWS = (AngularCentralGaussian, Watson)
"""Laws with the same density at u and -u."""
START_SHARE = 0.1
"""Share of all rows that each component gets at the start, on top of those nearest to its center.

It keeps a component that starts on one outlying row from concentrating on that row forever."""
MIN_SHARE = 1e-9
"""A component with less than this share of the total weight counts as empty."""
MAX_RESEEDS = 10
"""How often one run moves empty components to new rows before it gives up."""


QUADRATURE_WIDTH = 25
"""Numbers per row and component that a chunk has room for in laws that are integrated."""


class EmptyComponentError(SteradError):
    """Components stayed without points."""


@dataclass(frozen=True)
class Components:
    """The parameters of a mixture: a law of batch shape (k,) and log weights (k,) in float64."""

    law: SphereDistribution
    log_weights: Tensor
    n_parameters: int
    """The number of free parameters of one law."""

    def log_joint(self, points: Tensor) -> Tensor:
        """Return log weight + log-density of each component; points: (n, d) unit rows: (n, k)."""
        if isinstance(self.law, VonMisesFisher):
            constants, slopes = self._linear_form
            return torch.addmm(constants, points, slopes)
        return self.log_densities(points) + self.log_weights

    @cached_property
    def _linear_form(self) -> tuple[Tensor, Tensor]:
        """The log joint density of von Mises-Fisher laws: constants (k,) and slopes (d, k)."""
        law: Any = self.law
        constants = law.log_kernel(torch.zeros_like(self.log_weights)).double()
        slopes = law.mean_direction.double() * law.concentration.double().unsqueeze(1)
        return constants - log_area(law.dimension) + self.log_weights, slopes.mT

    def log_densities(self, points: Tensor) -> Tensor:
        """Return the log-density with respect to area: (n, k) float64."""
        law = self.law
        if isinstance(law, RotationalLaw):
            # One product of matrices instead of a (n, k, d) array.
            cosines = (points @ law.mean_direction.double().mT).clamp(-1, 1)
            return law.log_kernel(cosines).double() - log_area(law.dimension)
        return law.log_prob(points.unsqueeze(-2)).double()


@dataclass(frozen=True)
class Settings:
    """What `SphericalMixture` passes on: the law and the options of the iteration."""

    law: Any
    law_options: dict[str, float]
    n_components: int
    is_hard: bool
    max_iter: int
    tol: float


@dataclass(frozen=True)
class EMResult:
    """The end of one run; `lower_bound` is that of these components, per unit of weight."""

    components: Components
    lower_bound: float
    n_iter: int
    converged: bool


class ResultantSums:
    """The sufficient statistics of von Mises-Fisher laws: their memory does not grow with n."""

    def __init__(self, rows: Rows, count: int) -> None:
        self.sums = torch.zeros(count, rows.dimension, dtype=torch.float64, device="cpu")
        self.masses = torch.zeros(count, dtype=torch.float64, device="cpu")

    def add(self, place: slice, points: Tensor, shares: Tensor) -> None:
        """Add a chunk; shares: (n, k) weighted responsibilities."""
        self.sums += shares.mT @ points
        self.masses += shares.sum(0)

    def smooth(self, share: float) -> None:
        """Give each component an equal part of this share of all rows."""
        k = len(self.masses)
        self.sums = (1 - share) * self.sums + share / k * self.sums.sum(0)
        self.masses = (1 - share) * self.masses + share / k * self.masses.sum()

    def fit(self, settings: Settings) -> Fit[Any]:
        """Fit all components."""
        fit: Fit[Any] = settings.law.fit_resultant(self.sums, self.masses)
        return fit


class Responsibilities:
    """All responsibilities, (k, n), for laws without such statistics."""

    def __init__(self, rows: Rows, count: int) -> None:
        self.rows = rows
        self.shares = torch.zeros(count, len(rows), dtype=torch.float64, device="cpu")

    @property
    def masses(self) -> Tensor:
        """The weight of each component: (k,)."""
        return self.shares.sum(1)

    def add(self, place: slice, points: Tensor, shares: Tensor) -> None:
        """Store a chunk; shares: (n, k) weighted responsibilities."""
        self.shares[:, place] = shares.mT

    def smooth(self, share: float) -> None:
        """Give each component an equal part of this share of all rows."""
        everything = self.rows.weights * (share / len(self.shares))
        self.shares.mul_(1 - share).add_(everything)

    def fit(self, settings: Settings) -> Fit[Any]:
        """Fit all components to the same rows with their own weights."""
        points, options = self.rows.unit_points, settings.law_options
        fit: Fit[Any] = settings.law.fit_batch(points, self.shares, **options)
        return fit


Statistics = ResultantSums | Responsibilities


def run_em(rows: Rows, settings: Settings, generator: torch.Generator) -> EMResult:
    """Run once from a random start, until the bound rises by less than `tol`."""
    components = start(rows, settings, generator)
    bound, reseeds, n_iter, converged = -math.inf, 0, 0, False
    while True:
        statistics, new = expectation_step(rows, settings, components)
        empty = statistics.masses < MIN_SHARE * float(rows.weights.sum())
        converged = abs(new - bound) <= settings.tol and not bool(empty.any())
        bound = new
        if converged or n_iter == settings.max_iter:
            return EMResult(components, bound, n_iter, converged)
        n_iter += 1
        if bool(empty.any()):
            reseeds += 1
            components = reseed(rows, settings, components, empty, reseeds, generator)
        else:
            components = maximization_step(statistics, settings)


def expectation_step(
    rows: Rows, settings: Settings, components: Components
) -> tuple[Statistics, float]:
    """Return the statistics of all rows, and the bound per unit of weight.

    The bound is the log-likelihood, or with hard assignments that of rows and assignments.
    """
    statistics = new_statistics(rows, settings)
    total = torch.zeros((), dtype=torch.float64, device="cpu")
    for place, points in rows.chunks(chunk_width(components)):
        log_joint = components.log_joint(points)
        weights = rows.weights[place]
        if settings.is_hard:
            values, labels = log_joint.max(1)
            shares = torch.nn.functional.one_hot(labels, log_joint.shape[1]).double()
        else:
            # One exponential serves both the density and the responsibilities.
            largest = log_joint.amax(1, keepdim=True)
            shares = log_joint.sub_(largest).exp_()
            sums = shares.sum(1, keepdim=True)
            values = (largest + sums.log()).squeeze(1)
            shares.div_(sums)
        total += values @ weights
        statistics.add(place, points, shares.mul_(weights.unsqueeze(1)))
    return statistics, float(total / rows.weights.sum())


def maximization_step(statistics: Statistics, settings: Settings) -> Components:
    """Return the components of the largest likelihood for fixed responsibilities."""
    masses, fit = statistics.masses, statistics.fit(settings)
    return Components(fit.law, (masses / masses.sum()).log(), fit.n_parameters)


def new_statistics(rows: Rows, settings: Settings) -> Statistics:
    """Return empty statistics of the kind that the law needs."""
    has_sums = issubclass(settings.law, VonMisesFisher)
    return (ResultantSums if has_sums else Responsibilities)(rows, settings.n_components)


def chunk_width(components: Components) -> int:
    """Return how many numbers per row the densities of all components need."""
    law, count = components.law, len(components.log_weights)
    if isinstance(law, VonMisesFisher):
        return count
    # Laws with a covariance copy it for each row.
    return count * (QUADRATURE_WIDTH if isinstance(law, RotationalLaw) else law.dimension**2)


def start(
    rows: Rows, settings: Settings, generator: torch.Generator, given: Tensor | None = None
) -> Components:
    """Fit the components to the rows nearest to centers of k-means++, and a little to all rows."""
    is_axial = issubclass(settings.law, AXIAL_LAWS)
    centers = choose_centers(rows, settings.n_components, is_axial, generator, given)
    statistics = new_statistics(rows, settings)
    for place, points in rows.chunks(settings.n_components):
        cosines = points @ centers.mT
        nearest = (cosines.abs() if is_axial else cosines).argmax(1)
        shares = torch.nn.functional.one_hot(nearest, len(centers)).double()
        statistics.add(place, points, shares * rows.weights[place].unsqueeze(1))
    statistics.smooth(START_SHARE)
    return maximization_step(statistics, settings)


def reseed(
    rows: Rows,
    settings: Settings,
    components: Components,
    empty: Tensor,
    reseeds: int,
    generator: torch.Generator,
) -> Components:
    """Move empty components to rows far from the other components."""
    if reseeds > MAX_RESEEDS:
        raise EmptyComponentError(
            f"{int(empty.sum())} of {settings.n_components} components have no points, also after "
            f"{MAX_RESEEDS} new starts: use fewer components"
        )
    try:
        kept = components.law.mode.double()[~empty]
    except NotImplementedError:  # a law without a mode: all components start again
        kept = None
    return start(rows, settings, generator, kept)


def select_component(law: SphereDistribution, index: int) -> SphereDistribution:
    """Return one law of a batch of shape (k,)."""
    selected = copy(law)
    selected._batch_shape = torch.Size()
    for name in law.arg_constraints:
        setattr(selected, name, getattr(law, name)[index])
    return selected
