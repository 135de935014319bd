"""What SCR and LUMP share: a projection of fixed width, class means, a teacher by angles."""

import pytest
import torch
from torch.nn.functional import normalize

from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.scr import SCR
from sterad.streams import Batch

NAMES = ["scr", "lump"]


def learner(name: str, classes: int | None = None, **fields: object) -> SCR:
    cls = METHODS[name]
    problem = Problem((1, 8, 8), classes, memory=30, width=2, seed=3)
    made = build_learner(cls, cls.Config(**fields), problem)
    assert isinstance(made, SCR)
    return made


def images(n: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", NAMES)
def test_labels_beyond_the_projection_do_not_widen_it(name: str) -> None:
    made = learner(name, projection=4)
    for labels in ([0, 1, 2], [7, 900, 7], [0, 900, 1]):
        made.observe(Batch(images(3), torch.tensor(labels)))
    assert made.network.outputs == 4
    made.consolidate()
    assert made.scores(images(2))[1].tolist() == [0, 1, 2, 7, 900]
    loaded = learner(name, projection=4)
    loaded.load_state_dict(made.state_dict())
    again = Batch(images(3, seed=1), torch.tensor([1001, 7, 0]))
    first, second = made.observe(again), loaded.observe(again)
    assert first is not None
    assert second is not None
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", NAMES)
def test_an_instant_answer_is_the_nearest_mean_of_the_memory_as_it_is(name: str) -> None:
    made, x = learner(name), images(6)
    for step in range(3):
        made.observe(Batch(images(6, seed=step), torch.tensor([0, 1, 2, 0, 1, 2])))
    scores, labels = made.immediate_scores(x)
    made.consolidate()
    expected, columns = made.scores(x)
    assert torch.equal(scores, expected)
    assert labels.tolist() == columns.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", NAMES)
def test_a_teacher_is_followed_by_the_angle_of_projections(name: str) -> None:
    made = learner(name, teacher="ema", teacher_weight=2.0)
    taught, learned = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    pairs = zip(normalize(taught), normalize(learned), strict=True)
    expected = sum(1 - float(a @ b) for a, b in pairs) / 5
    assert made.distance(taught, learned).item() == pytest.approx(expected, abs=1e-6)
    assert made.distance(taught, 3 * taught).item() == pytest.approx(0, abs=1e-6)
    for step in range(3):
        loss = made.observe(Batch(images(6, seed=step), torch.tensor([0, 1, 2, 0, 1, 2])))
    assert loss is not None
    assert bool(loss.isfinite())
