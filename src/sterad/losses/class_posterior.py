"""Losses of classes with a density on the sphere: minus the log posterior or log-likelihood.

With class densities g(z·μ_c) relative to the uniform law and priors π_c,

    loss = -Σ_i log( π_y g(z_i·μ_y) / Σ_{c in classes} π_c g(z_i·μ_c) ),   y = labels[i],

a softmax cross-entropy with the logits log g + log π. The paper uses the classes of the batch.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from sterad.devices import to_device
from sterad.errors import SteradError

LogKernel = Callable[[Tensor], Tensor]
"""A log-density relative to the uniform law as a function of the cosine."""

Reduction = Literal["sum", "mean", "none"]


def posterior_loss(
    z: Tensor,
    labels: Tensor,
    log_kernel: LogKernel,
    directions: Tensor | None = None,
    classes: Tensor | None = None,
    log_priors: Tensor | None = None,
    reduction: Reduction = "sum",
) -> Tensor:
    """Return minus the log posterior of the labels.

    z: (n, d) unit rows; labels: (n,) int64; directions: (C, d) rows, by default the standard basis;
    classes: (k,) int64, sorted, the classes of the denominator, by default those among `labels`;
    log_priors: (k,), one per class, by default equal. Labels and classes are read on the CPU: give
    them as CPU tensors to avoid a synchronization with the device.

    >>> from sterad.sphere import VonMisesFisher, fast_log_kernel
    >>> z, labels = torch.eye(4)[:3], torch.tensor([0, 1, 1])
    >>> loss = posterior_loss(z, labels, fast_log_kernel(VonMisesFisher, 5.0, 4))
    >>> bool((loss - cross_entropy(5 * z[:, :2], labels, reduction="sum")).abs() < 1e-5)
    True
    """
    count = z.shape[1] if directions is None else len(directions)
    classes, targets = _find_targets(labels, classes, count, z.device)
    if directions is None:
        cosines = z.index_select(1, classes)
    else:
        cosines = z @ directions.index_select(0, classes).T
    return _cross_entropy(log_kernel(cosines), targets, log_priors, reduction)


def posterior_loss_of_scores(
    scores: Tensor,
    labels: Tensor,
    classes: Tensor | None = None,
    log_priors: Tensor | None = None,
    reduction: Reduction = "sum",
) -> Tensor:
    """Return `posterior_loss` from scores[i, c] = log-density of point i under class c: (n, C).

    For laws that depend on more than the cosine: the scores of a batch of C laws are
    `law.log_prob(z.unsqueeze(1))`.

    >>> round(posterior_loss_of_scores(torch.zeros(2, 3), torch.tensor([0, 2])).item(), 4)
    1.3863
    """
    classes, targets = _find_targets(labels, classes, scores.shape[1], scores.device)
    return _cross_entropy(scores.index_select(1, classes), targets, log_priors, reduction)


def likelihood_loss(
    z: Tensor,
    labels: Tensor,
    log_kernel: LogKernel,
    directions: Tensor | None = None,
    reduction: Reduction = "sum",
) -> Tensor:
    """Return minus the log-likelihood of the points, without the denominator of the posterior.

    >>> from sterad.sphere import AngularGaussian, fast_log_kernel
    >>> z, log_kernel = torch.eye(512).double()[:1], fast_log_kernel(AngularGaussian, 0.5**0.5, 512)
    >>> round(likelihood_loss(z, torch.tensor([0]), log_kernel).item(), 6)
    -15.86778
    """
    _check_labels(labels.cpu().numpy(), z.shape[1] if directions is None else len(directions))
    labels = to_device(labels, z.device)
    if directions is None:
        cosines = z.gather(1, labels.unsqueeze(1)).squeeze(1)
    else:
        cosines = (z * directions.index_select(0, labels)).sum(1)
    losses = -log_kernel(cosines)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.mean()


def _find_targets(
    labels: Tensor, classes: Tensor | None, count: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the sorted classes of the denominator and the position of each label in them.

    count: the number of classes that have a direction.
    """
    wanted = labels.cpu().numpy()
    if classes is None:
        _check_labels(wanted, count)
        # A lookup table takes a third of the time of sorting.
        allowed = np.bincount(wanted).nonzero()[0]
        position_of = np.zeros(count, np.int64)
        position_of[allowed] = np.arange(len(allowed))
        positions = position_of[wanted]
    else:
        allowed = classes.cpu().numpy()
        _check_labels(allowed, count)
        positions = np.searchsorted(allowed, wanted).clip(max=len(allowed) - 1)
        missing = allowed[positions] != wanted
        if missing.any():
            raise SteradError(
                f"the label {wanted[missing][0]} is not among the {len(allowed)} classes of the "
                "denominator: add it to `classes`, sorted, or omit `classes`"
            )
    found, targets = torch.from_numpy(allowed), torch.from_numpy(positions)
    return to_device(found, device), to_device(targets, device)


def _check_labels(labels: npt.NDArray[np.int64], count: int) -> None:
    """Raise if a label has no direction."""
    if not len(labels):
        return
    low, high = labels.min(), labels.max()
    if low < 0 or high >= count:
        raise SteradError(
            f"the label {low if low < 0 else high} has no direction, as there are {count} (0 to "
            f"{count - 1}): use a wider projection, or a row of `directions` or a column of scores "
            "for every class"
        )


def _cross_entropy(
    scores: Tensor, targets: Tensor, log_priors: Tensor | None, reduction: Reduction
) -> Tensor:
    if log_priors is not None:
        scores = scores + to_device(log_priors, scores.device)
    return cross_entropy(scores, targets, reduction=reduction)
