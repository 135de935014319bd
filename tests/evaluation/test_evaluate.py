import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from sterad.data import Dataset
from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.evaluation.evaluate import Answers, evaluate
from sterad.evaluation.sphere_points import axes, sphere_points
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.streams import Batch, Clear, Domain, Evaluation, Stream


class Parrot(Learner):
    """Answers the class it saw first, whatever it is shown."""

    def observe(self, batch: Batch) -> Tensor | None:
        self.admit(batch)
        return None

    def consolidate(self) -> None:
        self.ready = True

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        assert self.ready, "evaluate must consolidate first"
        return torch.zeros(len(x), len(self.seen)), self.seen

    immediate_scores = scores


def test_cells_and_accuracy_of_a_known_answer() -> None:
    data = Synthetic(classes=4, per_class=5, test_per_class=6).load()
    stream = Clear(tasks=2, batch_size=5, label_order=(0, 1, 2, 3)).open(data, seed=0)
    parrot = Parrot(None, Problem(data.input_shape, 4, memory=1))
    parrot.observe(Batch(torch.zeros(3, 1, 8, 8), torch.tensor([0, 1, 2])))
    answers = evaluate(parrot, stream)
    # Class 0 is right: 6 of 18 images of seen classes; 6 of 12 of task 1; none of task 2, whose
    # class 3 has not been seen but counts in its cell.
    assert answers.accuracy == pytest.approx(6 / 18)
    assert answers.cells == (0.5, 0.0)
    assert answers.confusion == ((6, 0, 0, 0),) * 4  # whatever the class, the answer is 0


def test_unseen_tasks_have_no_cell() -> None:
    data = Synthetic(classes=4, per_class=5, test_per_class=6).load()
    stream = Clear(tasks=2, label_order=(2, 3, 0, 1)).open(data, seed=0)
    parrot = Parrot(None, Problem(data.input_shape, 4, memory=1))
    parrot.observe(Batch(torch.zeros(2, 1, 8, 8), torch.tensor([2, 3])))
    assert evaluate(parrot, stream).cells == (0.5, None)


def test_sphere_points_are_unit_and_of_seen_classes_only() -> None:
    data = Synthetic(classes=6, per_class=5, test_per_class=6).load()
    stream = Clear(tasks=3).open(data, seed=0)
    chosen = axes(stream)
    assert chosen is not None
    assert chosen[0] in stream.tasks[0]
    assert chosen[-1] in stream.tasks[-1]
    method = METHODS["agd-fd"]
    learner = build_learner(
        method, method.Config(), Problem(data.input_shape, 6, memory=10, width=2)
    )
    assert sphere_points(learner, stream, chosen) is None
    learner.observe(stream.batch(0))
    drawn = sphere_points(learner, stream, chosen)
    assert drawn is not None
    labels, points = drawn
    assert set(labels) == {chosen[0]}
    assert torch.allclose(torch.tensor(points).norm(dim=1), torch.ones(len(points)), atol=1e-3)
    parrot = Parrot(None, Problem(data.input_shape, 6, memory=1))
    parrot.observe(stream.batch(0))
    assert sphere_points(parrot, stream, chosen) is None


class Bright(Parrot):
    """Answers class 1 to bright images and class 0 to dark ones."""

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        light = x.flatten(1).mean(dim=1, keepdim=True)
        return torch.cat([0.5 - light, light - 0.5], dim=1), torch.tensor([0, 1])


def two_domains() -> Stream:
    """Return white images of class 1 only, shown as they are and then a quarter as bright."""
    white = torch.full((8, 4, 4), 255, dtype=torch.uint8)
    data = Dataset.from_arrays(white, [1, 1, 1, 1, 1, 1, 1, 0], white, [1] * 8)
    return Domain("brightness", domains=2).open(data, seed=0)


def test_a_domain_counts_from_its_first_image_and_as_it_looks() -> None:
    stream = two_domains()
    learner = Bright(None, Problem((1, 4, 4), 2, memory=1))
    learner.observe(Batch(torch.zeros(2, 1, 4, 4), torch.tensor([0, 1])))
    assert evaluate(learner, stream, samples=1).cells == (1.0, None)
    assert evaluate(learner, stream, samples=4) == Answers(1.0, (1.0, None))  # at its very end
    # White images at a quarter of their brightness are taken for class 0: half of all 16 are right.
    assert evaluate(learner, stream, samples=5) == Answers(0.5, (1.0, 0.0))
    assert evaluate(learner, stream) == Answers(0.5, (1.0, 0.0))


def test_evaluations_that_share_images_count_each_once() -> None:
    data = Synthetic(classes=4, per_class=5, test_per_class=6).load()
    stream = Clear(tasks=2, label_order=(0, 1, 2, 3)).open(data, seed=0)
    everything = Evaluation("all", (0, 1, 2, 3), np.arange(24))
    twice = dataclasses.replace(stream, scored=(everything, stream.evaluations()[0]))
    parrot = Parrot(None, Problem(data.input_shape, 4, memory=1))
    parrot.observe(Batch(torch.zeros(4, 1, 8, 8), torch.arange(4)))
    assert evaluate(parrot, twice) == Answers(0.25, (0.25, 0.5))


def test_seen_classes_without_test_images_score_nothing_and_break_nothing() -> None:
    stream = two_domains()
    learner = Bright(None, Problem((1, 4, 4), 2, memory=1))
    learner.observe(Batch(torch.zeros(1, 1, 4, 4), torch.tensor([0])))
    assert evaluate(learner, stream, samples=1).accuracy == 0


def test_before_the_first_batch_there_is_a_sentence() -> None:
    learner = Bright(None, Problem((1, 4, 4), 2, memory=1))
    with pytest.raises(SteradError, match="no evaluation of the stream has begun"):
        evaluate(learner, two_domains())
