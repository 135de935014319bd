"""The momentum teacher: one whole step beside a literal one, its state, and who answers."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, Replay, build_learner
from sterad.methods.base.teacher import distillation
from sterad.streams import Batch, Clear, Stream
from sterad.testing import check_method

SMALL = {"teacher": "ema", "memory_batch": 4, "teacher_momentum": 0.9}


def stream() -> Stream:
    data = Synthetic(classes=4, per_class=10, test_per_class=4).load()
    return Clear(tasks=2, batch_size=5).open(data, seed=0)


def learner(name: str, classes: int | None = 4, **fields: Any) -> Replay:
    cls = METHODS[name]
    made = build_learner(
        cls, cls.Config(**(SMALL | fields)), Problem((1, 8, 8), classes, 12, width=2, seed=1)
    )
    assert isinstance(made, Replay)
    return made


def followed(made: Replay, steps: int) -> Replay:
    for step in range(steps):
        made.observe(stream().batch(step))
    return made


def literal_distillation(taught: Tensor, learned: Tensor, temperature: float) -> Tensor:
    """Return T² KL(teacher || student), row by row and class by class."""
    total = torch.zeros(())
    for t, s in zip(taught, learned, strict=True):
        p, q = (t / temperature).softmax(0), (s / temperature).softmax(0)
        total = total + sum(p[k] * (p[k] / q[k]).log() for k in range(len(t)))
    return temperature**2 * total / len(taught)


def test_distillation_is_the_divergence_from_teacher_to_student() -> None:
    taught, learned = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    expected = literal_distillation(taught, learned, 4.0)
    assert torch.allclose(distillation(taught, learned, 4.0), expected, rtol=1e-5)
    assert not torch.allclose(distillation(learned, taught, 4.0), expected, rtol=1e-3)


def test_one_step_of_replay_with_a_teacher() -> None:
    made = followed(learner("er", augmentation="none", weight_decay=0.0, momentum=0.0), 3)
    assert made.teacher is not None
    student, teacher = copy.deepcopy(made.network), copy.deepcopy(made.teacher.network)
    batch, kept = stream().batch(3), copy.deepcopy(made.memory).sample(4)
    both = Batch.concatenate(kept, batch)
    x = made.engine.to_device(both.x)
    with torch.no_grad():
        taught = teacher.eval()(x)
    loss = F.cross_entropy(student(x), both.y)
    lesson = [literal_distillation(taught, student(x), 4.0) for _ in ("the view", "the image")]
    (loss + 5.5 * (lesson[0] + lesson[1]) / 2).backward()
    counted = made.images
    made.observe(batch)
    assert made.images - counted == (1 + 2 + 1) * 9, "the method's, the student's, the teacher's"
    for ours, theirs in zip(made.network.parameters(), student.parameters(), strict=True):
        assert theirs.grad is not None
        assert torch.allclose(ours, theirs - 0.01 * theirs.grad, atol=1e-5)
    states = (made.teacher.network.state_dict(), teacher.state_dict(), made.network.state_dict())
    for name, now in states[0].items():
        before, learned = states[1][name], states[2][name]
        wanted = 0.9 * before + 0.1 * learned if now.is_floating_point() else learned
        assert torch.allclose(now, wanted, atol=1e-6), name


def test_a_teacher_starts_as_a_copy_without_gradients_and_stays_in_evaluation() -> None:
    made = learner("er")
    assert made.teacher is not None
    for mine, theirs in zip(
        made.teacher.network.parameters(), made.network.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)
        assert not mine.requires_grad
    followed(made, 2)
    assert not any(module.training for module in made.teacher.network.modules())
    assert all(parameter.grad is None for parameter in made.teacher.network.parameters())


def test_a_posterior_teacher_speaks_of_the_classes_seen() -> None:
    made = followed(learner("agd-fd", views=1, projection=16), 2)
    taught, learned = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    seen = made.seen.tolist()
    assert 0 < len(seen) < 4

    def posterior(p: Tensor) -> Tensor:
        return made.log_density(F.normalize(p)[:, seen])  # type: ignore[attr-defined,no-any-return]

    expected = literal_distillation(posterior(taught), posterior(learned), 4.0)
    assert torch.allclose(made.distance(taught, learned), expected, rtol=1e-4)


@pytest.mark.parametrize("who", ["student", "teacher", "average"])
def test_who_answers(who: str) -> None:
    made = followed(learner("er", predict_with=who), 3)
    assert made.teacher is not None
    student = dict(made.network.named_parameters())
    teacher = dict(made.teacher.network.named_parameters())
    for name, weight in made.predictor.named_parameters():
        expected = {"student": student[name], "teacher": teacher[name]}.get(
            who, (student[name] + teacher[name]) / 2
        )
        assert torch.allclose(weight, expected, atol=1e-6)


def test_new_classes_join_the_teacher_as_the_student_has_them() -> None:
    made = followed(learner("er", classes=None), 8)
    assert made.teacher is not None
    assert made.teacher.network.outputs == made.network.outputs == int(made.seen.max()) + 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agd-fd", "er", "er-ace", "derpp", "scr", "pcr", "ocm", "dvc"])
def test_methods_with_a_teacher_keep_the_contract(name: str) -> None:
    fields = SMALL | ({"views": 1} if name == "agd-fd" else {})
    check_method(name, METHODS[name].Config(predict_with="average", **fields))


@pytest.mark.parametrize("momentum", [1.0, -0.1, 2.0, float("nan")])
def test_a_momentum_outside_its_range_is_refused(momentum: float) -> None:
    told = rf"^teacher_momentum {momentum} is out of range: give a number in \[0, 1\)$"
    with pytest.raises(SteradError, match=told):
        learner("er", teacher_momentum=momentum)


def test_the_ends_of_its_range_are_taken() -> None:
    made = followed(learner("er", teacher_momentum=0.0), 3)
    assert made.teacher is not None
    for mine, theirs in zip(
        made.teacher.network.parameters(), made.network.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs), "a teacher that keeps nothing of itself is a copy"


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("teacher_weight", -1.0, r"a number in \[0, 1e\+06\]"),
        ("teacher_temperature", 0.0, r"a number in \(0, 1e\+06\]"),
    ],
)
def test_numbers_that_no_teacher_can_have(name: str, given: Any, wanted: str) -> None:
    fields: dict[str, Any] = {name: given}
    with pytest.raises(SteradError, match=f"^{name} {given} is out of range: give {wanted}$"):
        learner("er", **fields)


@pytest.mark.parametrize(("name", "given"), [("predict_with", "teacher"), ("teacher_weight", 2.0)])
def test_what_a_teacher_would_do_is_refused_without_one(name: str, given: Any) -> None:
    with pytest.raises(SteradError, match=f"{name}={given} without a teacher: set teacher=ema"):
        learner("er", teacher="none", **{"teacher_momentum": 0.99, name: given})
