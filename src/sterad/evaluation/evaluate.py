"""Evaluate a learner: accuracy on all seen classes and on each evaluation of the stream."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import Learner
from sterad.methods.base.learner import PREDICTION_BATCH_SIZE
from sterad.streams import Stream
from sterad.streams.batch import to_unit
from sterad.streams.domain_transforms import DomainTransform

Labels = npt.NDArray[np.int64]
Predictions = Callable[[Labels, DomainTransform | None], Labels]
"""From the indices of test images and a transformation to predicted labels."""
SPHERE_POINTS_PER_CLASS = 40


@dataclass(frozen=True)
class EvaluationResult:
    """Accuracies at one step of the stream."""

    accuracy: float
    """On the test images of all seen classes; on a domain stream, under the transformation of each
    domain that has started."""
    cells: tuple[float | None, ...]
    """On the test images of each evaluation; None if it has not started."""
    confusion: tuple[tuple[int, ...], ...] = field(default=(), compare=False)
    """Counts of test images by true class (row) and predicted class (column)."""


def evaluate(learner: Learner, stream: Stream, *, samples: int | None = None) -> EvaluationResult:
    """Consolidate, then predict each relevant test image once under each transformation.

    samples: stream images learned so far. An evaluation has started if `samples` has reached its
    first image and one of its classes has been seen; without `samples` only the classes count.
    """
    learner.consolidate()
    predict = partial(predict_all, learner, stream.dataset.test_images)
    return evaluate_predictions(predict, learner.seen.numpy(), stream, samples)


def evaluate_predictions(
    predict: Predictions, seen: Labels, stream: Stream, samples: int | None
) -> EvaluationResult:
    """Return the accuracies of predictions, which are computed once for each transformation."""
    evaluations = stream.evaluations()
    started = [
        one
        for one in evaluations
        if np.isin(one.classes, seen).any() and (samples is None or samples >= one.since)
    ]
    if not started:
        raise SteradError(
            "no evaluation of the stream has started: learn at least one batch before evaluating"
        )
    data = stream.dataset
    correct: dict[DomainTransform | None, npt.NDArray[np.bool_]] = {}  # of all test images
    counted, pairs = [], []
    for transform in dict.fromkeys(one.transform for one in started):
        needed = [one.indices for one in started if one.transform == transform]
        indices = np.unique(np.concatenate(needed))
        predicted = predict(indices, transform)
        truth = data.test_labels[indices]
        correct[transform] = np.zeros(len(data.test_labels), dtype=np.bool_)
        correct[transform][indices] = predicted == truth
        counted.append((predicted == truth)[np.isin(truth, seen)])
        pairs.append(truth * data.classes + predicted)
    cells = (
        _mean(correct[one.transform][one.indices]) if one in started else None
        for one in evaluations
    )
    confusion = np.bincount(np.concatenate(pairs), minlength=data.classes**2)
    rows = confusion.reshape(data.classes, data.classes).tolist()
    return EvaluationResult(_mean(np.concatenate(counted)), tuple(cells), tuple(map(tuple, rows)))


def predict_all(
    learner: Learner,
    images: npt.NDArray[np.generic],
    indices: Labels,
    transform: DomainTransform | None = None,
) -> Labels:
    """Return the learner's predictions for images[indices] under `transform`, in batches."""
    if not len(indices):
        return np.zeros(0, dtype=np.int64)
    predicted: Labels = map_images(learner.predict, images, indices, transform).numpy()
    return predicted


def map_images(
    function: Callable[[Tensor], Tensor],
    images: npt.NDArray[np.generic],
    indices: Labels,
    transform: DomainTransform | None = None,
) -> Tensor:
    """Return `function` of images[indices], in [0, 1] and under `transform`, in batches."""
    batches: list[Tensor] = []
    for start in range(0, len(indices), PREDICTION_BATCH_SIZE):
        x = to_unit(torch.from_numpy(images[indices[start : start + PREDICTION_BATCH_SIZE]]))
        batches.append(function(x if transform is None else transform(x)))
    return torch.cat(batches)


def _mean(correct: npt.NDArray[np.bool_]) -> float:
    """Return the accuracy, 0 without test images."""
    return float(correct.mean()) if correct.size else 0.0


def choose_sphere_classes(stream: Stream) -> tuple[int, int, int] | None:
    """Return a class of the first, a middle and the last task; None with fewer than three classes.

    Their fixed directions are the axes of the sphere in the report.
    """
    order = list(dict.fromkeys(label for task in stream.tasks for label in task))
    if len(order) < 3:
        return None
    return order[0], order[len(order) // 2], order[-1]


def sphere_points(
    learner: Learner, stream: Stream, classes: tuple[int, int, int]
) -> tuple[list[int], list[tuple[float, float, float]]] | None:
    """Return labels and points of test images of the seen classes among `classes`.

    A point is z restricted to the three directions and scaled to unit length. None if no class has
    been seen or the learner has no features on the sphere.
    """
    labels = stream.dataset.test_labels
    seen = [label for label in classes if label in learner.seen.tolist()]
    if not seen:
        return None
    per_class = [np.flatnonzero(labels == label)[:SPHERE_POINTS_PER_CLASS] for label in seen]
    indices = np.concatenate(per_class)
    z = learner.on_sphere(to_unit(torch.from_numpy(stream.dataset.test_images[indices])))
    if z is None:
        return None
    points = F.normalize(z[:, list(classes)]).to(torch.float64).round(decimals=4)
    return labels[indices].tolist(), [tuple(row) for row in points.tolist()]
