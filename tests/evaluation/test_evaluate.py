import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.evaluation.evaluate import evaluate
from sterad.evaluation.sphere_points import axes, sphere_points
from sterad.methods import METHODS, Learner, Problem
from sterad.streams import Batch, Clear


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

    instant_scores = scores


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
    learner = method(method.Config(), Problem(data.input_shape, 6, memory=10, width=2))
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
