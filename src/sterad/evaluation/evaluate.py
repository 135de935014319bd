"""Evaluation at one moment: every seen class, and each evaluation of the stream by itself."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sterad.methods import Learner
from sterad.streams import Stream
from sterad.streams.pixels import to_unit

CHUNK = 250
"""Images answered at a time: large enough to be fast, small enough for any memory."""


@dataclass(frozen=True)
class Answers:
    """Shares of right answers at one moment."""

    accuracy: float
    """On the test images of all seen classes."""
    cells: tuple[float | None, ...]
    """On the test images of each evaluation; None where none of its classes has been seen."""


def evaluate(learner: Learner, stream: Stream) -> Answers:
    """Consolidate and answer each test image that counts, once."""
    learner.consolidate()
    seen = learner.seen.numpy()
    evaluations = stream.evaluations()
    begun = [bool(np.isin(one.classes, seen).any()) for one in evaluations]
    wanted = np.unique(
        np.concatenate([e.indices for e, b in zip(evaluations, begun, strict=True) if b])
    )
    labels = stream.dataset.test_labels
    right = np.zeros(len(labels), dtype=bool)
    right[wanted] = predict_all(learner, stream.dataset.test_images, wanted) == labels[wanted]
    known = wanted[np.isin(labels[wanted], seen)]
    cells = (
        _share(right[e.indices]) if b else None for e, b in zip(evaluations, begun, strict=True)
    )
    return Answers(_share(right[known]), tuple(cells))


def predict_all(
    learner: Learner, images: npt.NDArray[np.generic], indices: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the learner's answer to each of images[indices]."""
    chunks = [indices[start : start + CHUNK] for start in range(0, len(indices), CHUNK)]
    answers: list[Tensor] = [
        learner.predict(to_unit(torch.from_numpy(images[chunk]))) for chunk in chunks
    ]
    together: npt.NDArray[np.int64] = torch.cat(answers).numpy()
    return together


def _share(right: npt.NDArray[np.bool_]) -> float:
    return float(right.mean())
