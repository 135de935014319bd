"""Evaluation at one moment: every seen class, and each evaluation of the stream by itself."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import Learner
from sterad.streams import Evaluation, Stream
from sterad.streams.pixels import to_unit

CHUNK = 250
"""Images answered at a time: large enough to be fast, small enough for any memory."""

Look = Callable[[Tensor], Tensor] | None
Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Answers:
    """Shares of right answers at one moment."""

    accuracy: float
    """On the test images of all seen classes; on a stream of domains, as each begun domain shows
    them."""
    cells: tuple[float | None, ...]
    """On the test images of each evaluation; None where it has not begun."""


def evaluate(learner: Learner, stream: Stream, *, samples: int | None = None) -> Answers:
    """Consolidate and answer each test image that counts, once under each transformation.

    samples: images of the stream learnt so far. An evaluation has begun when its time has come and
    one of its classes has been seen; without `samples` every time has come.
    """
    learner.consolidate()
    seen = learner.seen.numpy()
    evaluations = stream.evaluations()
    begun = [_has_begun(one, seen, samples) for one in evaluations]
    if not any(begun):
        raise SteradError(
            "no evaluation of the stream has begun: learn at least one batch before you evaluate"
        )
    right, asked = _answered(
        learner, stream, [one for one, b in zip(evaluations, begun, strict=True) if b]
    )
    known = np.isin(stream.dataset.test_labels, seen)
    cells = (
        _share(right[one.transform][one.indices]) if b else None
        for one, b in zip(evaluations, begun, strict=True)
    )
    counted = [right[look][asked[look] & known] for look in right]
    return Answers(_share(np.concatenate(counted)), tuple(cells))


def _has_begun(one: Evaluation, seen: npt.NDArray[np.int64], samples: int | None) -> bool:
    in_time = samples is None or samples >= one.since
    return in_time and bool(np.isin(one.classes, seen).any())


def _answered(
    learner: Learner, stream: Stream, evaluations: list[Evaluation]
) -> tuple[dict[Look, Marks], dict[Look, Marks]]:
    """Return, by transformation, which test images are answered right and which are asked."""
    data, asked, right = stream.dataset, dict[Look, Marks](), dict[Look, Marks]()
    for one in evaluations:
        marks = asked.setdefault(one.transform, np.zeros(len(data.test_labels), dtype=np.bool_))
        marks[one.indices] = True
    for look, marks in asked.items():
        wanted = np.flatnonzero(marks)
        right[look] = np.zeros_like(marks)
        answers = predict_all(learner, data.test_images, wanted, look)
        right[look][wanted] = answers == data.test_labels[wanted]
    return right, asked


def predict_all(
    learner: Learner,
    images: npt.NDArray[np.generic],
    indices: npt.NDArray[np.int64],
    transform: Look = None,
) -> npt.NDArray[np.int64]:
    """Return the learner's answer to each of images[indices], shown under `transform`."""
    answers: list[Tensor] = [torch.zeros(0, dtype=torch.int64)]
    for start in range(0, len(indices), CHUNK):
        x = to_unit(torch.from_numpy(images[indices[start : start + CHUNK]]))
        answers.append(learner.predict(x if transform is None else transform(x)))
    together: npt.NDArray[np.int64] = torch.cat(answers).numpy()
    return together


def _share(right: Marks) -> float:
    """Return the share of right answers, 0 where nothing could be asked."""
    return float(right.mean()) if right.size else 0.0
