"""Time of the angular-Gaussian loss relative to cross-entropy, forward and backward.

python benchmarks/posterior_loss.py [--repeats 200] [--threads 1]

Every line starts from z and the labels, gathers the columns of the batch, and ends with z.grad.
"""

import argparse
import importlib
import statistics
import time
from collections.abc import Callable

import torch
from implementations.series_loss import series_loss
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from sterad.losses import posterior_loss
from sterad.sphere import AngularGaussian, fast_log_kernel

N, D, VARIANCE = 444, 512, 2.0
Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy_loss(z: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy on the columns of the classes in the batch."""
    classes, targets = torch.unique(labels, return_inverse=True)
    return cross_entropy(z.index_select(1, classes), targets, reduction="sum")


def cross_entropy_with_targets(z: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy if the labels are already the targets 0 to C - 1."""
    classes = torch.arange(int(labels.max()) + 1)
    return cross_entropy(z.index_select(1, classes), labels, reduction="sum")


def polynomial(z: Tensor, labels: Tensor) -> Tensor:
    """Return the posterior loss with the polynomial kernel."""
    return posterior_loss(z, labels, fast_log_kernel(AngularGaussian, VARIANCE**-0.5, D))


def direct(z: Tensor, labels: Tensor) -> Tensor:
    """Return the posterior loss by quadrature, as for a learned concentration."""
    pole = torch.zeros(D)
    pole[0] = 1
    law = AngularGaussian(pole, VARIANCE**-0.5, validate_args=False)
    return posterior_loss(z, labels, law.log_kernel)


def series(z: Tensor, labels: Tensor) -> Tensor:
    """Return the loss by the alternating series in float64 on (C, N, d) one-hot products."""
    return series_loss(z, labels, VARIANCE)


LOSSES: dict[str, Loss] = {
    "cross-entropy": cross_entropy_loss,
    "series, 40 terms": series,
    "sterad": polynomial,
    "sterad, direct": direct,
    "cross-entropy, targets given": cross_entropy_with_targets,
}
SLOW = ("series, 40 terms", "sterad, direct")


def milliseconds(loss: Loss, z: Tensor, labels: Tensor) -> float:
    """Time one forward and backward pass."""
    z.grad = None
    start = time.perf_counter()
    torch.autograd.backward(loss(z, labels))
    return 1e3 * (time.perf_counter() - start)


def compare(classes: int, repeats: int) -> dict[str, float]:
    """Return the median of each loss; the losses alternate, so that all have the same noise."""
    generator = torch.Generator().manual_seed(classes)
    z = normalize(torch.randn(N, D, generator=generator), dim=1).requires_grad_()
    labels = torch.arange(N) % classes
    times: dict[str, list[float]] = {name: [] for name in LOSSES}
    for repeat in range(repeats):
        for name, loss in LOSSES.items():
            if repeat < 3 or name not in SLOW:
                times[name].append(milliseconds(loss, z, labels))
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def projnormal_line() -> str:
    """Return a line with the time of projnormal's density, if it is installed."""
    try:
        log_pdf = importlib.import_module("projnormal.formulas.projected_normal").log_pdf
    except ImportError:
        return "projnormal density: not installed"
    z = normalize(torch.randn(N, D, generator=torch.Generator().manual_seed(0)), dim=1).double()
    mean, covariance = VARIANCE**-0.5 * torch.eye(D).double()[0], torch.eye(D).double()
    start = time.perf_counter()
    log_pdf(mean_x=mean, covariance_x=covariance, y=z)
    return (
        f"projnormal density, one class, forward only: {1e3 * (time.perf_counter() - start):.2f} ms"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    columns = {classes: compare(classes, args.repeats) for classes in (10, 100, 200)}
    print(f"forward and backward, N={N}, d={D}, variance {VARIANCE}, median ms (× cross-entropy)")
    print(f"{'':30}" + "".join(f"{f'C={classes}':>18}" for classes in columns))
    for name in LOSSES:
        cells = [
            f"{times[name]:9.3f} ({times[name] / times['cross-entropy']:5.2f})"
            for times in columns.values()
        ]
        print(f"{name:30}" + "".join(f"{cell:>18}" for cell in cells))
    print(projnormal_line())


if __name__ == "__main__":
    main()
