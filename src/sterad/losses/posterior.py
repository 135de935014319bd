"""The fixed-directions losses: the posterior of a class given a point on the sphere.

With class densities g(z·μ_c) relative to the uniform law and priors π_c,

    loss = -Σ_i log( π_y g(z_i·μ_y) / Σ_{c in classes} π_c g(z_i·μ_c) ),   y = labels[i],

a softmax cross-entropy whose logits are log g + log π. The paper takes the classes of the batch.
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

    z: (n, d) unit rows; labels: (n,) int64; directions: (C, d) rows, None for the standard basis,
    class c at coordinate c; classes: (k,) int64, sorted, those in the denominator, None for
    those among `labels`; log_priors: (k,), aligned with the classes, None for equal ones. Labels
    and classes are looked at on the host: left there, they make no device wait.

    >>> from sterad.sphere import VonMisesFisher, kernel
    >>> z, labels = torch.eye(4)[:3], torch.tensor([0, 1, 1])
    >>> loss = posterior_loss(z, labels, kernel(VonMisesFisher, 5.0, 4))
    >>> bool((loss - cross_entropy(5 * z[:, :2], labels, reduction="sum")).abs() < 1e-5)
    True
    """
    classes, targets = _targets(labels, classes, _directions(z, directions))
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
    """Return the same loss from scores[i, c] = log-density of point i under class c: (n, C).

    For laws that do not depend on the cosine alone: a batch of C laws gives the scores by
    `law.log_prob(z.unsqueeze(1))`.

    >>> round(posterior_loss_of_scores(torch.zeros(2, 3), torch.tensor([0, 2])).item(), 4)
    1.3863
    """
    columns = scores.shape[1], "scores have", "a column for every class"
    classes, targets = _targets(labels, classes, columns)
    classes, targets = to_device(classes, scores.device), to_device(targets, scores.device)
    return _cross_entropy(scores.index_select(1, classes), targets, log_priors, reduction)


def likelihood_loss(
    z: Tensor,
    labels: Tensor,
    kernel: Kernel,
    directions: Tensor | None = None,
    reduction: Reduction = "sum",
) -> Tensor:
    """Return minus the log-likelihood of the points, the variant without a denominator.

    >>> from sterad.sphere import AngularGaussian, kernel
    >>> z = torch.eye(512, dtype=torch.float64)[:1]
    >>> loss = likelihood_loss(z, torch.tensor([0]), kernel(AngularGaussian, 0.5**0.5, 512))
    >>> round(loss.item(), 6)
    -15.86778
    """
    _require(labels.cpu().numpy(), _directions(z, directions))
    labels = to_device(labels, z.device)
    if directions is None:
        cosines = z.gather(1, labels.unsqueeze(1)).squeeze(1)
    else:
        cosines = (z * directions.index_select(0, labels)).sum(1)
    losses = -kernel(cosines)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.mean()


Room = tuple[int, str, str]
"""How many classes can be told apart, in which words, and what to do about more."""


def _directions(z: Tensor, directions: Tensor | None) -> Room:
    if directions is None:
        return z.shape[1], "the standard basis has", "a wider projection"
    return len(directions), "there are", "a row of `directions` for every class"


def _targets(labels: Tensor, classes: Tensor | None, room: Room) -> tuple[Tensor, Tensor]:
    """Return the sorted classes of the denominator and the position of each label in them."""
    asked = labels.cpu().numpy()
    if classes is None:
        _require(asked, room)
        # A table, which takes a third of the time of sorting.
        found = np.bincount(asked).nonzero()[0]
        places = np.zeros(room[0], np.int64)
        places[found] = np.arange(len(found))
        return torch.from_numpy(found), torch.from_numpy(places[asked])
    known = classes.cpu().numpy()
    _require(known, room)
    positions = np.searchsorted(known, asked).clip(max=len(known) - 1)
    missing = known[positions] != asked
    if missing.any():
        raise SteradError(
            f"the label {asked[missing][0]} is not among the {len(known)} classes of the "
            "denominator: add it to `classes`, sorted, or leave `classes` out"
        )
    return torch.from_numpy(known), torch.from_numpy(positions)


def _require(labels: npt.NDArray[np.int64], room: Room) -> None:
    """Refuse labels that have no direction."""
    if not len(labels):
        return
    (count, have, remedy), low, high = room, labels.min(), labels.max()
    if low < 0 or high >= count:
        raise SteradError(
            f"the label {low if low < 0 else high} has no direction, as {have} {count} "
            f"(0 to {count - 1}): use {remedy}"
        )


def _cross_entropy(
    scores: Tensor, targets: Tensor, log_priors: Tensor | None, reduction: Reduction
) -> Tensor:
    if log_priors is not None:
        scores = scores + to_device(log_priors, scores.device)
    return cross_entropy(scores, targets, reduction=reduction)
