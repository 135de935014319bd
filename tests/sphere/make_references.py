"""Write references.json: values of every law in every dimension, with mpmath at 50 digits.

python -m tests.sphere.make_references

It adds what the file does not have: delete the file to compute all of it. The test
test_references.py compares the laws with them, and computes some again with more nodes.
"""

import json
from pathlib import Path
from typing import Any

import mpmath as mp
import torch

from sterad import sphere
from tests.sphere import oracle

PATH = Path(__file__).with_name("references.json")
PRINTED_DIGITS = 22
Cells = list[dict[str, Any]]
References = dict[str, Cells]
CONCENTRATIONS: dict[str, tuple[float, ...]] = {
    "VonMisesFisher": (0.3, 5e3),
    "PowerSpherical": (5e3, 0.3),
    "SphericalCauchy": (0.3, 5e3),
    "Watson": (0.3, 5e3, -50.0),
    "AngularGaussian": (6.0, 0.5),
    # In 4,096 dimensions the series of a large one needs too many terms.
    "ProjectedStudentT": (0.5, 6.0, 0.5, 6.0, 0.5, 6.0, 0.5, 0.5),
}
"""Small and large ones, by turns over the dimensions."""
ANGLE_COSINE = "0.5"
SPREADS = (-0.35, -0.1, 0.14, 0.39)


def pairs(dimension: int) -> list[tuple[tuple[str, float], tuple[str, float]]]:
    """Return pairs of laws and concentrations; each law is once the first and once the second."""
    laws = [
        ("VonMisesFisher", 0.7 * dimension),
        ("SphericalCauchy", 0.9 * dimension),
        ("PowerSpherical", 1.0 * dimension),
        ("AngularGaussian", 0.25 * dimension**0.5 + 1),
        ("ProjectedStudentT", 1.5),
        ("Watson", (0.8 if dimension % 2 else -0.6) * dimension),
    ]
    return list(zip(laws, laws[1:] + laws[:1], strict=True))


def pairs_with_covariance(dimension: int) -> list[tuple[tuple[str, float], tuple[str, float]]]:
    """Return pairs of which at least one law has a covariance."""
    general = ("GeneralAngularGaussian", 0.25 * dimension**0.5)
    central = ("AngularCentralGaussian", 0.4)
    fisher, watson = ("VonMisesFisher", 0.7 * dimension), ("Watson", 0.8 * dimension)
    found = [(general, fisher), (general, central), (general, watson), (general, general)]
    found += [(central, general), (fisher, central)]
    if dimension == 16:  # ten seconds, and more in more dimensions
        found.append((fisher, general))
    return found[:1] if dimension > 512 else found


def make_law(
    name: str, dimension: int, kappa: float | torch.Tensor, axis: torch.Tensor | None = None
) -> Any:
    """Return a law of the package about an axis, by default the first one."""
    if axis is None:
        axis = torch.eye(dimension, dtype=torch.float64)[0]
    if name in oracle.COVARIANCE_KERNELS:
        along = torch.outer(axis, axis)
        across = torch.eye(dimension, dtype=torch.float64) - along
        if name == "AngularCentralGaussian":
            return sphere.AngularCentralGaussian(covariance_matrix=kappa * along + across)
        covariance = oracle.AXIS_VARIANCE * along + oracle.OTHER_VARIANCE * across
        return sphere.GeneralAngularGaussian(kappa * axis, covariance_matrix=covariance)
    shape = {"df": oracle.DF} if name == "ProjectedStudentT" else {}
    return getattr(sphere, name)(axis, kappa, **shape)


def turned_axis(dimension: int) -> torch.Tensor:
    """Return the axis of the second law of a pair."""
    axis = torch.zeros(dimension, dtype=torch.float64)
    axis[0], axis[1] = float(ANGLE_COSINE), (1 - float(ANGLE_COSINE) ** 2) ** 0.5
    return axis


def moments(
    name: str, dimension: int, kappa: float, cosines: list[float], count: int = 24
) -> dict[str, Any]:
    """Return the entropy and both tails at the cosines."""
    entropy, tails = oracle.moments(name, kappa, dimension, cosines, count)
    return {"entropy": _text(entropy), "tails": [[_text(low), _text(up)] for low, up in tails]}


def divergence(
    first: tuple[str, float], second: tuple[str, float], dimension: int, count: int = 28
) -> str:
    """Return KL(first || second)."""
    return _text(oracle.divergence(first, second, dimension, ANGLE_COSINE, count))


def fit_cosines(dimension: int) -> list[str]:
    """Return the cosines of the points of a fit."""
    return [f"{0.4 + spread * dimension**-0.5:.6f}" for spread in SPREADS]


def fit_points(cosines: list[str], dimension: int) -> torch.Tensor:
    """Return points with these cosines in pairs whose mean direction is the first axis."""
    rows = []
    for place, text in enumerate(cosines):
        axis = 1 + place % (dimension - 1)
        for sign in (-1, 1):
            row = torch.zeros(dimension, dtype=torch.float64)
            row[0], row[axis] = float(text), sign * (1 - float(text) ** 2) ** 0.5
            rows.append(row)
    return torch.stack(rows)


def fitted_concentration(name: str, dimension: int) -> float:
    """Return what the package fits to the points."""
    shape = {"df": oracle.DF} if name == "ProjectedStudentT" else {}
    points = fit_points(fit_cosines(dimension), dimension)
    return float(getattr(sphere, name).fit(points, **shape).law.concentration)


def concentration(name: str, dimension: int, start: float) -> str:
    """Return the concentration of maximum likelihood."""
    return _text(oracle.concentration(name, dimension, fit_cosines(dimension), start))


def _text(value: mp.mpf) -> str:
    return str(mp.nstr(value, PRINTED_DIGITS))


def make_moments(place: int) -> Cells:
    """Return entropies and tails of every law in one dimension."""
    d = oracle.DIMENSIONS[place]
    cells: Cells = []
    for name, kappas in CONCENTRATIONS.items():
        kappa = kappas[place % len(kappas)]
        levels = torch.tensor([1e-7 if d > 3 else 1e-2, 0.3, 0.999], dtype=torch.float64)
        cosines = make_law(name, d, kappa).icdf(levels).tolist()
        cell = {"law": name, "dimension": d, "concentration": kappa, "cosines": cosines}
        cells.append(cell | moments(name, d, kappa, cosines))
    return cells


def make_divergences(place: int) -> Cells:
    """Return divergences of every pair in one dimension."""
    d = oracle.DIMENSIONS[place]
    return [
        {"first": p, "second": q, "dimension": d, "divergence": divergence(p, q, d)}
        for p, q in pairs(d)
    ]


def make_covariances(place: int) -> Cells:
    """Return divergences of pairs with a covariance, and entropies, in one dimension."""
    d = oracle.DIMENSIONS[place]
    if not 5 <= d <= 2048:  # below, tests integrate over the sphere; above, one takes minutes
        return []
    entropy = {
        name: _text(oracle.moments(name, kappa, d, [])[0])
        for (name, kappa), _ in pairs_with_covariance(d)
    }
    return [
        {"first": p, "second": q, "dimension": d, "entropy": entropy[p[0]]}
        | {"divergence": divergence(p, q, d)}
        for p, q in pairs_with_covariance(d)
    ]


def make_fits(place: int) -> Cells:
    """Return fitted concentrations in one dimension."""
    d = oracle.DIMENSIONS[place]
    return [
        {
            "law": name,
            "dimension": d,
            "concentration": concentration(name, d, fitted_concentration(name, d)),
        }
        for name in oracle.SCORES
    ]


KINDS = {
    "moments": make_moments,
    "divergences": make_divergences,
    "covariances": make_covariances,
    "fits": make_fits,
}


def read() -> References:
    """Return the references in the file."""
    found: References = json.loads(PATH.read_text("utf-8"))
    return found


def write(found: References) -> None:
    """Write one line for each reference."""
    lines = [
        f'"{kind}": [\n' + ",\n".join(json.dumps(cell) for cell in cells) + "\n]"
        for kind, cells in found.items()
    ]
    PATH.write_text("{" + ",\n".join(lines) + "}\n", "utf-8")


def main() -> None:
    """Add what the file does not have."""
    found = read() if PATH.exists() else {kind: [] for kind in KINDS}
    for place, dimension in enumerate(oracle.DIMENSIONS):
        for kind, make in KINDS.items():
            if not any(cell["dimension"] == dimension for cell in found.setdefault(kind, [])):
                found[kind] += make(place)
                write(found)
                print(dimension, kind, flush=True)


if __name__ == "__main__":
    main()
