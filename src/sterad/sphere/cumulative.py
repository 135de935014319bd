"""Distribution functions of the cosine, accurate in both tails.

In s = artanh(t) the density of the cosine is h(s) = g(t) sech^(d-1)(s), with one peak. The interval
on which h is above exp(-100) of its peak is divided into panels. On each panel h is interpolated at
Chebyshev nodes and integrated exactly, so that a law is evaluated at a fixed number of nodes for
any number of values. Sums from the left and from the right keep relative accuracy in each tail;
outside the interval, where a probability is below 1e-40, it is returned as 0.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from numpy.polynomial import chebyshev
from torch import Tensor

from sterad.sphere.quadrature import log_cosh, mass_interval

PART_PANELS = (48, 288, 48)
"""Panels of the lower tail, of the part that holds the mass, and of the upper tail."""
PANELS = sum(PART_PANELS)
NODES = 16
"""Chebyshev nodes of a panel."""
CUTOFF_NATS = 100.0
"""Distance below the peak up to which tails are resolved: probabilities down to 1e-40."""
BISECTIONS = 60
"""Halvings of a panel in the inverse: to the last bit of float64."""

TABLE_END = 19.0
"""Largest |artanh(t)| of a table: tanh(19) rounds to 1."""

Function = Callable[[Tensor], Tensor]


class CosineIntegral:
    """Integrals of functions of the cosine under a law, up to given cosines.

    log_kernel takes (nodes, k) cosines; like: (k,) float64, for shape and device.
    """

    def __init__(self, log_kernel: Function, like: Tensor, dimension: int) -> None:
        low, high = mass_interval(log_kernel, like.detach(), dimension, CUTOFF_NATS)
        inner = mass_interval(log_kernel, like.detach(), dimension)
        self.ends = torch.stack([low, inner[0], inner[1], high])
        """Ends of the lower tail, the main part and the upper tail: (4, k)."""
        self.edges = torch.cat([self._even_edges(part) for part in range(3)] + [high.unsqueeze(0)])
        self.width = self.edges.diff(dim=0)
        nodes = torch.from_numpy(chebyshev.chebpts1(NODES)).to(like.device)
        fraction = (nodes[:, None] + 1) / 2
        s = (self.edges[:-1, None] + self.width[:, None] * fraction).flatten(0, 1)
        self.cosine = torch.tanh(s)
        """Nodes: (PANELS * NODES, k)."""
        height = log_kernel(self.cosine) - (dimension - 1) * log_cosh(s)
        self.peak = height.detach().amax(0)
        self.density = (height - self.peak).exp()
        self.total = Antiderivative(self.density, self.width)
        self.mass = self.total.lower[-1]
        self.dimension = dimension

    def _even_edges(self, part: int) -> Tensor:
        """Return the lower edges of the panels of a part: (panels, k)."""
        count = PART_PANELS[part]
        order = torch.arange(count, dtype=torch.float64, device=self.ends.device).unsqueeze(-1)
        return self.ends[part] + (self.ends[part + 1] - self.ends[part]) * (order / count)

    def _variable(self, panel: Tensor, x: Tensor) -> Tensor:
        """Return s at a position in [-1, 1] of a panel: (n, k)."""
        return self.edges.gather(0, panel) + self.width.gather(0, panel) * ((x + 1) / 2)

    def place(self, cosine: Tensor) -> tuple[Tensor, Tensor]:
        """Return the panel of each cosine, (n, k), and its position in [-1, 1] there."""
        s = torch.atanh(cosine.clamp(-1 + 1e-16, 1 - 1e-16))
        offset = torch.zeros_like(s)
        for part, count in enumerate(PART_PANELS):
            size = (self.ends[part + 1] - self.ends[part]).clamp_min(1e-300)
            offset = offset + count * ((s - self.ends[part]) / size).clamp(0, 1)
        panel = offset.detach().long().clamp_max(PANELS - 1)
        return panel, 2 * (offset - panel) - 1

    def below(self, cosine: Tensor) -> Tensor:
        """Return the probability of a smaller cosine: (n, k)."""
        panel, x = self.place(cosine)
        value = (self.total.below(panel, x) / self.mass).clamp_max(1)
        is_zero = (panel == 0) & (x <= -1) | (cosine <= -1)
        return _set_ends(value, is_zero, cosine >= 1)

    def above(self, cosine: Tensor) -> Tensor:
        """Return the probability of a larger cosine: (n, k)."""
        panel, x = self.place(cosine)
        value = (self.total.above(panel, x) / self.mass).clamp_max(1)
        is_zero = (panel == PANELS - 1) & (x >= 1) | (cosine >= 1)
        return _set_ends(value, is_zero, cosine <= -1)

    def quantile(self, probability: Tensor) -> Tensor:
        """Return the cosines below which each probability lies: (n, k); differentiable."""
        cosine = self.invert(probability)
        if not (torch.is_grad_enabled() and (self.mass.requires_grad or probability.requires_grad)):
            return cosine
        # A Newton step of length zero: it only adds the derivatives.
        inside = cosine.clamp(-1 + 1e-16, 1 - 1e-16).requires_grad_()
        (density,) = torch.autograd.grad(self.below(inside).sum(), inside, retain_graph=True)
        gap = probability - self.below(inside.detach())
        return cosine + (gap - gap.detach()) / density

    @torch.no_grad()
    def invert(self, probability: Tensor) -> Tensor:
        """Return the cosines below which each probability lies: (n, k)."""
        target = probability * self.mass
        edges = self.total.lower.detach().mT.contiguous()
        found = torch.searchsorted(edges, target.mT.contiguous(), right=True).mT
        panel = (found - 1).clamp(0, PANELS - 1)
        low, high = -torch.ones_like(target), torch.ones_like(target)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            is_left = self.total.below(panel, middle) < target
            low, high = torch.where(is_left, middle, low), torch.where(is_left, high, middle)
        return torch.tanh(self._variable(panel, low))

    @torch.no_grad()
    def slope(self, cosine: Tensor, log_kernel: Tensor, score: Tensor) -> Tensor:
        """Return the derivative of each cosine with respect to κ at fixed probability: (n, k).

        It is -(∂F/∂κ) / f. log_kernel: at the cosines; score: ∂ log g/∂κ at the nodes.
        """
        panel, x = self.place(cosine)
        change = Antiderivative(self.density * score, self.width)
        # ∂F/∂κ, summed from the nearer tail: the sums from both sides add up to zero.
        is_low = self.total.below(panel, x) < self.mass / 2
        rise = torch.where(is_low, change.below(panel, x), -change.above(panel, x))
        s = self._variable(panel, x)
        density = (log_kernel - (self.dimension - 1) * log_cosh(s) - self.peak).exp()
        return -rise / density * (1 - cosine) * (1 + cosine)


def _set_ends(value: Tensor, is_zero: Tensor, is_one: Tensor) -> Tensor:
    return torch.where(is_one, 1.0, torch.where(is_zero, 0.0, value))


class Antiderivative:
    """The integral of a function that is given at the nodes of all panels: (PANELS * NODES, k).

    width: of the panels, (PANELS, k).
    """

    def __init__(self, values: Tensor, width: Tensor) -> None:
        matrix = torch.from_numpy(integration_matrix(NODES)).to(values.device)
        panels = values.reshape(PANELS, NODES, -1)
        # Coefficients of the integral from the left end of each panel: (NODES + 1, PANELS, k).
        self.series = torch.einsum("cn,pnk->cpk", matrix, panels) * (width / 2)
        mass = self.series.sum(0)
        zero = torch.zeros_like(mass[:1])
        self.lower = torch.cat([zero, mass.cumsum(0)])
        """Integrals up to the edges: (PANELS + 1, k)."""
        self.upper = torch.cat([mass.flip(0).cumsum(0).flip(0), zero])

    def below(self, panel: Tensor, x: Tensor) -> Tensor:
        """Return the integral up to position x in [-1, 1] of a panel: (n, k)."""
        return self.lower.gather(0, panel) + self._partial(panel, x)

    def above(self, panel: Tensor, x: Tensor) -> Tensor:
        """Return the integral from position x of a panel on: (n, k)."""
        rest = self.series.sum(0).gather(0, panel) - self._partial(panel, x)
        return self.upper.gather(0, panel + 1) + rest

    def _partial(self, panel: Tensor, x: Tensor) -> Tensor:
        return evaluate_panels(self.series, panel, x)


class KernelTable:
    """A log kernel at many cosines: interpolated in s = artanh(t) on equal panels.

    log_kernel takes (nodes, k) cosines; like: (k,) float64. `is_resolved` says whether the
    interpolation is exact to rounding; narrow features of large concentrations may need the law.
    """

    def __init__(self, log_kernel: Function, like: Tensor) -> None:
        nodes = torch.from_numpy(chebyshev.chebpts1(NODES)).to(like.device)
        panels = torch.arange(PANELS, dtype=torch.float64, device=like.device)
        s = TABLE_END * (2 * (panels[:, None] + (nodes + 1) / 2) / PANELS - 1)
        values = log_kernel(torch.tanh(s).reshape(-1, 1).expand(-1, len(like)))
        matrix = torch.linalg.inv(torch.from_numpy(chebyshev.chebvander(nodes.cpu(), NODES - 1)))
        values = values.reshape(PANELS, NODES, -1)
        self.series = torch.einsum("cn,pnk->cpk", matrix.to(like.device), values)
        rest = self.series[-2:].abs().amax((0, 1))
        self.is_resolved = bool((rest <= 1e-13 * (1 + self.series[0].abs().amax(0))).all())

    def __call__(self, cosine: Tensor) -> Tensor:
        """Return the log kernel at cosines (..., k)."""
        rows = torch.atanh(cosine.reshape(-1, cosine.shape[-1]).clamp(-1 + 1e-16, 1 - 1e-16))
        offset = ((rows / TABLE_END + 1) / 2 * PANELS).clamp(0, PANELS)
        panel = offset.long().clamp_max(PANELS - 1)
        return evaluate_panels(self.series, panel, 2 * (offset - panel) - 1).reshape(cosine.shape)


def evaluate_panels(series: Tensor, panel: Tensor, x: Tensor) -> Tensor:
    """Evaluate Chebyshev series (terms, PANELS, k) at positions x of panels, (n, k) each.

    By Clenshaw's rule; a position is in [-1, 1].
    """
    second, first = torch.zeros_like(x), torch.zeros_like(x)
    for term in series[1:].flip(0):
        second, first = first, term.gather(0, panel) + 2 * x * first - second
    return series[0].gather(0, panel) + x * first - second


@lru_cache(maxsize=4)
def integration_matrix(count: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Return the map from values at Chebyshev nodes to the coefficients of the integral from -1.

    >>> values = chebyshev.chebpts1(5) ** 2
    >>> coefficients = integration_matrix(5) @ values
    >>> bool(abs(chebyshev.chebval(1.0, coefficients) - 2 / 3) < 1e-15)
    True
    """
    nodes = chebyshev.chebpts1(count)
    basis = chebyshev.chebvander(nodes, count - 1)
    inverse = np.linalg.inv(basis)
    return np.stack([chebyshev.chebint(column, lbnd=-1) for column in inverse.T], 1)
