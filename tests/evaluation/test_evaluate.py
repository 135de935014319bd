import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from sterad.data import Dataset
from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.evaluation.evaluate import (
    EvaluationResult,
    choose_sphere_classes,
    evaluate,
    sphere_points,
)
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.streams import Batch, Clear, Domain, Evaluation, Stream


@dataclasses.dataclass(frozen=True)
class NoFields:
    """A config without fields."""


class FirstClass(Learner):
    """Predicts the class it saw first for all images."""

    Config = NoFields

    def observe(self, batch: Batch) -> Tensor | None:
        self.see(batch)
        return None

    def consolidate(self) -> None:
        self.ready = True

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        assert self.ready, "evaluate must consolidate first"
        return torch.zeros(len(x), len(self.seen)), self.seen

    immediate_scores = scores


def test_cells_accuracy_and_confusion_by_hand() -> None:
    data = Synthetic(classes=4, per_class=5, test_per_class=6).load()
    stream = Clear(tasks=2, batch_size=5, label_order=(0, 1, 2, 3)).open(data, seed=0)
    learner = FirstClass(NoFields(), Problem(data.input_shape, 4, memory=1))
    learner.observe(Batch(torch.zeros(3, 1, 8, 8), torch.tensor([0, 1, 2])))
    result = evaluate(learner, stream)
    # Class 0 is correct: 6 of 18 images of seen classes; 6 of 12 of task 1; none of task 2, whose
    # class 3 has not been seen but counts in its cell.
    assert result.accuracy == pytest.approx(6 / 18)
    assert result.cells == (0.5, 0.0)
    assert result.confusion == ((6, 0, 0, 0),) * 4  # class 0 is predicted for all images


def test_unseen_tasks_have_no_cell() -> None:
    data = Synthetic(classes=4, per_class=5, test_per_class=6).load()
    stream = Clear(tasks=2, label_order=(2, 3, 0, 1)).open(data, seed=0)
    learner = FirstClass(NoFields(), Problem(data.input_shape, 4, memory=1))
    learner.observe(Batch(torch.zeros(2, 1, 8, 8), torch.tensor([2, 3])))
    assert evaluate(learner, stream).cells == (0.5, None)


def test_sphere_points_have_unit_length_and_seen_classes() -> None:
    data = Synthetic(classes=6, per_class=5, test_per_class=6).load()
    stream = Clear(tasks=3).open(data, seed=0)
    classes = choose_sphere_classes(stream)
    assert classes is not None
    assert classes[0] in stream.tasks[0]
    assert classes[-1] in stream.tasks[-1]
    method = METHODS["agd-fd"]
    learner = build_learner(
        method, method.Config(), Problem(data.input_shape, 6, memory=10, width=2)
    )
    assert sphere_points(learner, stream, classes) is None
    learner.observe(stream.batch(0))
    found = sphere_points(learner, stream, classes)
    assert found is not None
    labels, points = found
    assert set(labels) == {classes[0]}
    assert torch.allclose(torch.tensor(points).norm(dim=1), torch.ones(len(points)), atol=1e-3)
    without_sphere = FirstClass(NoFields(), Problem(data.input_shape, 6, memory=1))
    without_sphere.observe(stream.batch(0))
    assert sphere_points(without_sphere, stream, classes) is None


class BrightnessClassifier(FirstClass):
    """Predicts class 1 for bright images and class 0 for dark ones."""

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        brightness = x.flatten(1).mean(dim=1, keepdim=True)
        return torch.cat([0.5 - brightness, brightness - 0.5], dim=1), torch.tensor([0, 1])


def two_domains() -> Stream:
    """Return white images of class 1, first unchanged, then at a quarter of their brightness."""
    white = torch.full((8, 4, 4), 255, dtype=torch.uint8)
    data = Dataset.from_arrays(white, [1, 1, 1, 1, 1, 1, 1, 0], white, [1] * 8)
    return Domain("brightness", domains=2).open(data, seed=0)


def test_a_domain_counts_from_its_first_image_under_its_transformation() -> None:
    stream = two_domains()
    learner = BrightnessClassifier(NoFields(), Problem((1, 4, 4), 2, memory=1))
    learner.observe(Batch(torch.zeros(2, 1, 4, 4), torch.tensor([0, 1])))
    assert evaluate(learner, stream, samples=1).cells == (1.0, None)
    assert evaluate(learner, stream, samples=4) == EvaluationResult(
        1.0, (1.0, None)
    )  # at its very end
    # At a quarter of their brightness white images are predicted as class 0: 8 of 16 are correct.
    assert evaluate(learner, stream, samples=5) == EvaluationResult(0.5, (1.0, 0.0))
    assert evaluate(learner, stream) == EvaluationResult(0.5, (1.0, 0.0))


def test_images_in_several_evaluations_count_once() -> None:
    data = Synthetic(classes=4, per_class=5, test_per_class=6).load()
    stream = Clear(tasks=2, label_order=(0, 1, 2, 3)).open(data, seed=0)
    everything = Evaluation("all", (0, 1, 2, 3), np.arange(24))
    twice = dataclasses.replace(stream, scored=(everything, stream.evaluations()[0]))
    learner = FirstClass(NoFields(), Problem(data.input_shape, 4, memory=1))
    learner.observe(Batch(torch.zeros(4, 1, 8, 8), torch.arange(4)))
    assert evaluate(learner, twice) == EvaluationResult(0.25, (0.25, 0.5))


def test_accuracy_is_zero_without_test_images() -> None:
    stream = two_domains()
    learner = BrightnessClassifier(NoFields(), Problem((1, 4, 4), 2, memory=1))
    learner.observe(Batch(torch.zeros(1, 1, 4, 4), torch.tensor([0])))
    assert evaluate(learner, stream, samples=1).accuracy == 0


def test_evaluating_before_the_first_batch_raises_an_error() -> None:
    learner = BrightnessClassifier(NoFields(), Problem((1, 4, 4), 2, memory=1))
    with pytest.raises(SteradError, match="no evaluation of the stream has started"):
        evaluate(learner, two_domains())
