"""Coverage of 95 % intervals of laws with a covariance in many dimensions.

python benchmarks/sphere_coverage.py LAW --out FILE     LAW: general-angular-gaussian, or
                                                        elliptically-symmetric-angular-gaussian
python benchmarks/sphere_coverage.py table --out FILE   shares of all results so far

Each fit has points of its own, and intervals of an entry of m and of an entry of Σ beside the
diagonal, both chosen by the seed, and of the length of m, from `Fit.standard_error_of`. Deviations
in standard errors are appended to FILE, and seeds that are there already are skipped.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from sterad.sphere import EllipticallySymmetricAngularGaussian, GeneralAngularGaussian

LAWS: dict[str, Any] = {
    "general-angular-gaussian": GeneralAngularGaussian,
    "elliptically-symmetric-angular-gaussian": EllipticallySymmetricAngularGaussian,
}
NORMAL_QUANTILE = 1.959964


def true_law(name: str, d: int) -> Any:
    """Return a law with correlated coordinates, whose mean has a length near 3 or 6."""
    generator = torch.Generator().manual_seed(d)
    noise = torch.randn(d, d, generator=generator, dtype=torch.float64)
    matrix = torch.eye(d, dtype=torch.float64) + noise @ noise.mT / d
    mean = torch.linspace(-0.5, 2.0, d, dtype=torch.float64) * (3 / d) ** 0.5
    if name == "general-angular-gaussian":
        matrix = matrix / torch.linalg.det(matrix) ** (1 / d)
        return GeneralAngularGaussian(mean, covariance_matrix=matrix)
    return EllipticallySymmetricAngularGaussian.from_tangent(2 * mean, matrix[1:, 1:])


def measure(name: str, d: int, points: int, seed: int) -> dict[str, Any]:
    """Fit once, and return the deviations of both entries in standard errors."""
    generator, started = torch.Generator().manual_seed(seed), time.process_time()
    true = true_law(name, d)
    fit = LAWS[name].fit(true.sample(torch.Size([points]), generator=generator))
    row, column, entry = torch.randperm(d, generator=generator)[:3].tolist()
    result = {"law": name, "d": d, "points": points, "seed": seed, "row": row, "column": column}
    functions: dict[str, Callable[[Any], torch.Tensor]] = {
        "loc": lambda law: law.loc[entry],
        "covariance": lambda law: law.covariance_matrix[row, column],
        "length": lambda law: law.loc.norm(),
    }
    for key, function in functions.items():
        error = fit.standard_error_of(function)
        result[key] = round(float((function(fit.law) - function(true)) / error), 4)
    return result | {"entry": entry, "seconds": round(time.process_time() - started, 1)}


def run(name: str, d: int, points: int, fits: int, out: Path) -> None:
    """Measure the seeds that are missing, and append each result."""
    done = {r["seed"] for r in read(out) if (r["law"], r["d"], r["points"]) == (name, d, points)}
    for seed in range(fits):
        if seed not in done:
            with open(out, "a") as lines:
                lines.write(json.dumps(measure(name, d, points, seed)) + "\n")


def read(out: Path) -> list[dict[str, Any]]:
    """Return the results so far."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def print_table(out: Path) -> None:
    """Print the share of intervals that hold the true value, for each law, d and count."""
    results = read(out)
    for key in sorted({(r["law"], r["d"], r["points"]) for r in results}):
        of_law = [r for r in results if (r["law"], r["d"], r["points"]) == key]
        law, d, points = key
        print(f"{law}, d = {d}, {points:,} points, {len(of_law)} fits")
        for name, symbol in (
            ("loc", "entry of m"),
            ("covariance", "entry of Σ"),
            ("length", "|m|"),
        ):
            deviations = torch.tensor([r[name] for r in of_law])
            share = float((deviations.abs() < NORMAL_QUANTILE).float().mean())
            print(f"  {symbol}: {share:.3f}; mean deviation {float(deviations.mean()):+.2f}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("law", choices=(*LAWS, "table"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--fits", type=int, default=200)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.law == "table":
        print_table(args.out)
    else:
        run(args.law, args.dimension, args.points, args.fits, args.out)


if __name__ == "__main__":
    main()
