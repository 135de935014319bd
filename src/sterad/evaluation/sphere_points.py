"""Representations around their fixed directions: the points of a picture like the paper's first."""

import numpy as np
import torch
import torch.nn.functional as F

from sterad.methods import Learner
from sterad.streams import Stream
from sterad.streams.batch import to_unit

POINTS = 40
"""Test images of each class that are drawn."""


def axes(stream: Stream) -> tuple[int, int, int] | None:
    """Return the three classes that span the picture: of the first, a middle and the last task."""
    order = list(dict.fromkeys(label for task in stream.tasks for label in task))
    if len(order) < 3:
        return None
    return order[0], order[len(order) // 2], order[-1]


def sphere_points(
    learner: Learner, stream: Stream, classes: tuple[int, int, int]
) -> tuple[list[int], list[tuple[float, float, float]]] | None:
    """Return labels and points of seen classes among `classes`, in the space of their directions.

    A point is z restricted to the three directions and scaled to unit length.
    """
    labels = stream.dataset.test_labels
    seen = [label for label in classes if label in learner.seen.tolist()]
    if not seen:
        return None
    chosen = np.concatenate([np.flatnonzero(labels == label)[:POINTS] for label in seen])
    z = learner.on_sphere(to_unit(torch.from_numpy(stream.dataset.test_images[chosen])))
    if z is None:
        return None
    points = F.normalize(z[:, list(classes)]).to(torch.float64).round(decimals=4)
    return labels[chosen].tolist(), [tuple(row) for row in points.tolist()]
