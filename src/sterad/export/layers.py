"""Layers from features to scores: every rule that predicts is a short sequence of these.

A layer is its numbers and its tensors, so that a card with the numbers and a file with the tensors
are enough to build it again. All of them can be traced for a batch of any size.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.classifiers import NearestMean, NearestNeighbors
from sterad.errors import SteradError

MAX_DEGREE = 512
"""Largest degree of the polynomial of a log-density."""


class Layer(nn.Module):
    """A layer without trained weights; its tensors are buffers."""

    kind: ClassVar[str]
    """Name of the layer in a card."""

    def __init__(self, **tensors: Tensor | None) -> None:
        """Keep copies of the tensors on the CPU; None for one that is left out."""
        super().__init__()
        for name, tensor in tensors.items():
            kept = None if tensor is None else tensor.detach().cpu().contiguous().clone()
            self.register_buffer(name, kept)

    def numbers(self) -> dict[str, Any]:
        """Return the arguments of the constructor that are no tensors, as JSON values."""
        return {}


class Linear(Layer):
    """h @ weight.T + bias; weight: (k, d), bias: (k,)."""

    kind = "linear"
    weight: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        """Take the tensors of torch's linear layer."""
        super().__init__(weight=weight, bias=bias)

    def forward(self, h: Tensor) -> Tensor:
        """Return (n, k) for h: (n, d)."""
        return F.linear(h, self.weight, self.bias)


class Cosine(Layer):
    """Cosines between h and the rows of weight: (k, d)."""

    kind = "cosine"
    weight: Tensor

    def __init__(self, weight: Tensor) -> None:
        """Take the rows, of any length."""
        super().__init__(weight=weight)

    def forward(self, h: Tensor) -> Tensor:
        """Return (n, k) for h: (n, d)."""
        return F.linear(F.normalize(h), F.normalize(self.weight))


class Affine(Layer):
    """(h - center) @ weights + bias; center: (d,), weights: (d, k), bias: (k,)."""

    kind = "affine"
    center: Tensor
    weights: Tensor
    bias: Tensor

    def __init__(self, center: Tensor, weights: Tensor, bias: Tensor) -> None:
        """Take the scores of a learner in closed form."""
        super().__init__(center=center, weights=weights, bias=bias)

    def forward(self, h: Tensor) -> Tensor:
        """Return (n, k) for h: (n, d)."""
        return torch.addmm(self.bias, h - self.center, self.weights)


class ReLU(Layer):
    """max(h, 0)."""

    kind = "relu"

    def forward(self, h: Tensor) -> Tensor:
        """Return the shape of h."""
        return h.relu()


class Unit(Layer):
    """Rows of unit length; zero rows do not change."""

    kind = "unit"

    def forward(self, h: Tensor) -> Tensor:
        """Return the shape of h: (n, d)."""
        return F.normalize(h)


class Double(Layer):
    """The same numbers in float64: learners in closed form compute in it."""

    kind = "double"

    def forward(self, h: Tensor) -> Tensor:
        """Return the shape of h."""
        return h.double()


class Columns(Layer):
    """Some columns of h, divided by a temperature; index: (k,) integers."""

    kind = "columns"
    index: Tensor

    def __init__(self, index: Tensor, temperature: float = 1.0) -> None:
        """Take the columns of the seen classes."""
        super().__init__(index=index)
        self.temperature = float(temperature)

    def forward(self, h: Tensor) -> Tensor:
        """Return (n, k) for h: (n, d)."""
        chosen = h.index_select(1, self.index)
        return chosen if self.temperature == 1.0 else chosen / self.temperature

    def numbers(self) -> dict[str, Any]:
        """Return the temperature."""
        return {"temperature": self.temperature}


class Fourier(Layer):
    """√(2/D) cos(h @ frequencies + phases); frequencies: (d, D), phases: (D,)."""

    kind = "fourier"
    frequencies: Tensor
    phases: Tensor

    def __init__(self, frequencies: Tensor, phases: Tensor) -> None:
        """Take what the seed of a learner has drawn."""
        super().__init__(frequencies=frequencies, phases=phases)

    def forward(self, h: Tensor) -> Tensor:
        """Return (n, D) for h: (n, d)."""
        scale = math.sqrt(2 / self.phases.shape[0])
        return torch.addmm(self.phases, h, self.frequencies).cos() * scale


class Mahalanobis(Layer):
    """-|inverse_c (h - mean_c)|² for each class c; means: (k, d), inverses: (k, d, d).

    The inverses are those of Cholesky factors: ONNX has no triangular solve.
    """

    kind = "mahalanobis"
    means: Tensor
    inverses: Tensor

    def __init__(self, means: Tensor, inverses: Tensor) -> None:
        """Take one mean and one inverse factor for each class."""
        super().__init__(means=means, inverses=inverses)

    def forward(self, h: Tensor) -> Tensor:
        """Return (n, k) for h: (n, d)."""
        differences = h.T.unsqueeze(0) - self.means.unsqueeze(2)
        return -(self.inverses @ differences).square().sum(dim=1).T


class Means(Layer):
    """Gaussian log-likelihoods at class means: see `sterad.classifiers.NearestMean`."""

    kind = "means"
    means: Tensor
    labels: Tensor

    def __init__(self, means: Tensor, labels: Tensor, variance: float) -> None:
        """Take means (k, d), their labels (k,) and the common variance."""
        super().__init__(means=means, labels=labels)
        self.variance = float(variance)

    def forward(self, h: Tensor) -> Tensor:
        """Return (n, k) for h: (n, d) unit rows."""
        return NearestMean(self.means, self.labels, self.variance).scores(h)

    def numbers(self) -> dict[str, Any]:
        """Return the variance."""
        return {"variance": self.variance}


class Neighbors(Layer):
    """The vote of the nearest stored features: see `sterad.classifiers.NearestNeighbors`."""

    kind = "neighbors"
    features: Tensor
    rows: Tensor
    labels: Tensor

    def __init__(self, features: Tensor, rows: Tensor, labels: Tensor) -> None:
        """Take features (m, d), and the positions (m,) of their classes in labels: (k,)."""
        super().__init__(features=features, rows=rows, labels=labels)

    def forward(self, h: Tensor) -> Tensor:
        """Return (n, k) for h: (n, d) unit rows."""
        return NearestNeighbors(self.features, self.rows, self.labels).scores(h)


class LogDensity(Layer):
    """The log-density of a law as a polynomial in the cosine, in float64."""

    kind = "log-density"

    def __init__(self, series: Sequence[float]) -> None:
        """Take Chebyshev coefficients, lowest first."""
        super().__init__()
        if not 0 < len(series) <= MAX_DEGREE + 1:
            raise ValueError(f"a polynomial has {len(series)} coefficients")
        self.series = [float(one) for one in series]

    @cached_property
    def polynomial(self) -> Any:
        """The polynomial of the coefficients."""
        from sterad.sphere.fast_log_kernel import Polynomial  # no other layer needs the laws

        return Polynomial(np.array(self.series))

    def forward(self, cosines: Tensor) -> Tensor:
        """Return float64 of the shape of the cosines."""
        density: Tensor = self.polynomial.evaluate(cosines.double())
        return density

    def numbers(self) -> dict[str, Any]:
        """Return the coefficients."""
        return {"series": self.series}


class Traced(Layer):
    """A user's function of tensors; it can be traced, but not built again from a card."""

    kind = "own"

    def __init__(self, function: Callable[[Tensor], Tensor], name: str) -> None:
        """Take the function, and its name for messages."""
        super().__init__()
        self.function, self.name = function, name

    def forward(self, h: Tensor) -> Tensor:
        """Return what the function returns."""
        return self.function(h)

    def numbers(self) -> dict[str, Any]:
        """Return the name."""
        return {"name": self.name}


LAYERS: dict[str, Callable[..., Layer]] = {
    one.kind: one
    for one in (
        *(Linear, Cosine, Affine, ReLU, Unit, Double, Columns, Fourier, LogDensity),
        *(Mahalanobis, Means, Neighbors),
    )
}
"""Layers that a card can name."""


def describe_layers(layers: nn.Sequential) -> list[dict[str, Any]]:
    """Return the kind and the numbers of each layer, as JSON values."""
    return [{"layer": one.kind, **one.numbers()} for one in layers if isinstance(one, Layer)]


def build_layers(
    specs: Sequence[Mapping[str, Any]], tensors: Mapping[str, Tensor]
) -> nn.Sequential:
    """Return the layers of a description; tensors are named `POSITION.NAME`."""
    layers = []
    for position, spec in enumerate(specs):
        numbers = dict(spec)
        kind = numbers.pop("layer")
        if kind not in LAYERS:
            raise SteradError(
                f"layer {position} is {kind!r}, which this version of sterad does not know: load "
                "the file with the version that wrote it"
            )
        prefix = f"{position}."
        own = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        layers.append(LAYERS[kind](**own, **numbers))
    return nn.Sequential(*layers)
