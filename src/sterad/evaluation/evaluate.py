"""Evaluation at one moment: every seen class, and each evaluation of the stream by itself."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import Learner
from sterad.methods.base.learner import PREDICTION_BATCH_SIZE
from sterad.streams import Evaluation, Stream
from sterad.streams.batch import to_unit

Look = Callable[[Tensor], Tensor] | None
Marks = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.int64]
UNASKED = -1


@dataclass(frozen=True)
class Answers:
    """Shares of right answers at one moment."""

    accuracy: float
    """On the test images of all seen classes; on a stream of domains, as each begun domain shows
    them."""
    cells: tuple[float | None, ...]
    """On the test images of each evaluation; None where it has not begun."""
    confusion: tuple[tuple[int, ...], ...] = field(default=(), compare=False)
    """Test images of each class (down) that were answered with each class (across)."""


def evaluate(learner: Learner, stream: Stream, *, samples: int | None = None) -> Answers:
    """Consolidate and answer each test image that counts, once under each transformation.

    samples: images of the stream learned so far. An evaluation has begun when its time has come and
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
    answered = _answered(
        learner, stream, [one for one, b in zip(evaluations, begun, strict=True) if b]
    )
    truth, classes = stream.dataset.test_labels, stream.dataset.classes
    right = {look: answers == truth for look, answers in answered.items()}
    known = np.isin(truth, seen)
    cells = (
        _share(right[one.transform][one.indices]) if b else None
        for one, b in zip(evaluations, begun, strict=True)
    )
    counted = [right[look][(answered[look] != UNASKED) & known] for look in right]
    confusion = np.sum([_confusion(truth, one, classes) for one in answered.values()], axis=0)
    return Answers(
        _share(np.concatenate(counted)), tuple(cells), tuple(map(tuple, confusion.tolist()))
    )


def _has_begun(one: Evaluation, seen: npt.NDArray[np.int64], samples: int | None) -> bool:
    in_time = samples is None or samples >= one.since
    return in_time and bool(np.isin(one.classes, seen).any())


def _answered(
    learner: Learner, stream: Stream, evaluations: list[Evaluation]
) -> dict[Look, Labels]:
    """Return, by transformation, the answer to each test image, `UNASKED` where none is wanted."""
    data, asked, answered = stream.dataset, dict[Look, Marks](), dict[Look, Labels]()
    for one in evaluations:
        marks = asked.setdefault(one.transform, np.zeros(len(data.test_labels), dtype=np.bool_))
        marks[one.indices] = True
    for look, marks in asked.items():
        wanted = np.flatnonzero(marks)
        answered[look] = np.full(len(marks), UNASKED, dtype=np.int64)
        answered[look][wanted] = predict_all(learner, data.test_images, wanted, look)
    return answered


def _confusion(truth: Labels, answers: Labels, classes: int) -> Labels:
    asked = answers != UNASKED
    pairs = truth[asked] * classes + answers[asked]
    return np.bincount(pairs, minlength=classes**2).reshape(classes, classes)


def predict_all(
    learner: Learner,
    images: npt.NDArray[np.generic],
    indices: npt.NDArray[np.int64],
    transform: Look = None,
) -> npt.NDArray[np.int64]:
    """Return the learner's answer to each of images[indices], shown under `transform`."""
    answers: list[Tensor] = [torch.zeros(0, dtype=torch.int64)]
    for start in range(0, len(indices), PREDICTION_BATCH_SIZE):
        x = to_unit(torch.from_numpy(images[indices[start : start + PREDICTION_BATCH_SIZE]]))
        answers.append(learner.predict(x if transform is None else transform(x)))
    together: npt.NDArray[np.int64] = torch.cat(answers).numpy()
    return together


def _share(right: Marks) -> float:
    """Return the share of right answers, 0 where nothing could be asked."""
    return float(right.mean()) if right.size else 0.0
