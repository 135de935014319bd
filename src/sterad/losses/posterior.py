"""The fixed-direction losses: the posterior of a class given a point on the sphere.

With class densities g(z·μ_c) relative to the uniform law and priors π_c,

    loss = -Σ_i log( π_y g(z_i·μ_y) / Σ_{c in classes} π_c g(z_i·μ_c) ),   y = labels[i],

a softmax cross-entropy with the logits log g + log π. The paper uses the classes of the batch.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from sterad.devices import to_device
from sterad.errors import SteradError

Kernel = Callable[[Tensor], Tensor]
"""A log-density relative to the uniform law as a function of the cosine."""

Reduction = Literal["sum", "mean", "none"]


def posterior_loss(
    z: Tensor,
    labels: Tensor,
    kernel: Kernel,
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

    >>> from sterad.sphere import VonMisesFisher, kernel
    >>> z, labels = torch.eye(4)[:3], torch.tensor([0, 1, 1])
    >>> loss = posterior_loss(z, labels, kernel(VonMisesFisher, 5.0, 4))
    >>> bool((loss - cross_entropy(5 * z[:, :2], labels, reduction="sum")).abs() < 1e-5)
    True
    """
    classes, targets = _find_targets(labels, classes, _class_limit(z, directions))
    classes, targets = to_device(classes, z.device), to_device(targets, z.device)
    if directions is None:
        cosines = z.index_select(1, classes)
    else:
        cosines = z @ directions.index_select(0, classes).T
    return _cross_entropy(kernel(cosines), targets, log_priors, reduction)


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
    limit = ClassLimit(scores.shape[1], "scores have", "a column for every class")
    classes, targets = _find_targets(labels, classes, limit)
    classes, targets = to_device(classes, scores.device), to_device(targets, scores.device)
    return _cross_entropy(scores.index_select(1, classes), targets, log_priors, reduction)


def likelihood_loss(
    z: Tensor,
    labels: Tensor,
    kernel: Kernel,
    directions: Tensor | None = None,
    reduction: Reduction = "sum",
) -> Tensor:
    """Return minus the log-likelihood of the points, without the denominator of the posterior.

    >>> from sterad.sphere import AngularGaussian, kernel
    >>> z = torch.eye(512, dtype=torch.float64)[:1]
    >>> loss = likelihood_loss(z, torch.tensor([0]), kernel(AngularGaussian, 0.5**0.5, 512))
    >>> round(loss.item(), 6)
    -15.86778
    """
    _check_labels(labels.cpu().numpy(), _class_limit(z, directions))
    labels = to_device(labels, z.device)
    if directions is None:
        cosines = z.gather(1, labels.unsqueeze(1)).squeeze(1)
    else:
        cosines = (z * directions.index_select(0, labels)).sum(1)
    losses = -kernel(cosines)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.mean()


class ClassLimit(NamedTuple):
    """The number of classes that have a direction, and the words of the error for other labels."""

    classes: int
    subject: str
    remedy: str


def _class_limit(z: Tensor, directions: Tensor | None) -> ClassLimit:
    if directions is None:
        return ClassLimit(z.shape[1], "the standard basis has", "a wider projection")
    return ClassLimit(len(directions), "there are", "a row of `directions` for every class")


def _find_targets(
    labels: Tensor, classes: Tensor | None, limit: ClassLimit
) -> tuple[Tensor, Tensor]:
    """Return the sorted classes of the denominator and the position of each label in them."""
    wanted = labels.cpu().numpy()
    if classes is None:
        _check_labels(wanted, limit)
        # A lookup table takes a third of the time of sorting.
        present = np.bincount(wanted).nonzero()[0]
        position_of = np.zeros(limit.classes, np.int64)
        position_of[present] = np.arange(len(present))
        return torch.from_numpy(present), torch.from_numpy(position_of[wanted])
    allowed = classes.cpu().numpy()
    _check_labels(allowed, limit)
    positions = np.searchsorted(allowed, wanted).clip(max=len(allowed) - 1)
    missing = allowed[positions] != wanted
    if missing.any():
        raise SteradError(
            f"the label {wanted[missing][0]} is not among the {len(allowed)} classes of the "
            "denominator: add it to `classes`, sorted, or omit `classes`"
        )
    return torch.from_numpy(allowed), torch.from_numpy(positions)


def _check_labels(labels: npt.NDArray[np.int64], limit: ClassLimit) -> None:
    """Raise if a label has no direction."""
    if not len(labels):
        return
    low, high = labels.min(), labels.max()
    if low < 0 or high >= limit.classes:
        raise SteradError(
            f"the label {low if low < 0 else high} has no direction, as {limit.subject} "
            f"{limit.classes} (0 to {limit.classes - 1}): use {limit.remedy}"
        )


def _cross_entropy(
    scores: Tensor, targets: Tensor, log_priors: Tensor | None, reduction: Reduction
) -> Tensor:
    if log_priors is not None:
        scores = scores + to_device(log_priors, scores.device)
    return cross_entropy(scores, targets, reduction=reduction)
