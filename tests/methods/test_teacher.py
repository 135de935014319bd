"""The momentum teacher: one whole step against a literal one, its state, and predictions."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import METHODS, Replay
from sterad.methods.agd_fd import AngularGaussianFixedDirections
from sterad.methods.base.teacher import distillation
from sterad.streams import Batch
from sterad.testing import check_method
from tests.methods.scaffold import build, count_images, open_stream, train

TEACHER: dict[str, Any] = {"teacher": "ema", "memory_batch": 4, "teacher_momentum": 0.9}
STREAM = open_stream(classes=4, batch_size=5)


def trained(steps: int, classes: int | None = 4, **fields: Any) -> Replay:
    """Return ER with a teacher after some steps."""
    learner = build("er", classes, 12, {"seed": 1}, **(TEACHER | fields))
    train(learner, STREAM, steps)
    return learner


def literal_distillation(target: Tensor, output: Tensor, temperature: float) -> Tensor:
    """Return T² KL(teacher || student), row by row and class by class."""
    total = torch.zeros(())
    for t, s in zip(target, output, strict=True):
        p, q = (t / temperature).softmax(0), (s / temperature).softmax(0)
        total = total + sum(p[k] * (p[k] / q[k]).log() for k in range(len(t)))
    return temperature**2 * total / len(target)


def test_distillation_is_the_divergence_from_teacher_to_student() -> None:
    target, output = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    expected = literal_distillation(target, output, 4.0)
    assert torch.allclose(distillation(target, output, 4.0), expected, rtol=1e-5)
    assert not torch.allclose(distillation(output, target, 4.0), expected, rtol=1e-3)


def test_one_step_of_er_with_a_teacher_equals_the_literal_algorithm() -> None:
    learner = trained(3, augmentation="none", weight_decay=0.0, momentum=0.0)
    assert learner.teacher is not None
    student, teacher = copy.deepcopy(learner.network), copy.deepcopy(learner.teacher.network)
    batch, stored = STREAM.batch(3), copy.deepcopy(learner.memory).sample(4)
    both = Batch.concatenate(stored, batch)
    x = learner.engine.to_device(both.x)
    with torch.no_grad():
        target = teacher.eval()(x)
    loss = F.cross_entropy(student(x), both.y)
    # Without augmentation the view equals the raw images.
    distances = [literal_distillation(target, student(x), 4.0) for _ in ("view", "raw")]
    (loss + 5.5 * (distances[0] + distances[1]) / 2).backward()
    assert count_images(learner, batch) == (1 + 2 + 1) * 9, "method, student (twice), teacher"
    for weight, start in zip(learner.network.parameters(), student.parameters(), strict=True):
        assert start.grad is not None
        assert torch.allclose(weight, start - 0.01 * start.grad, atol=1e-5)
    old, new = teacher.state_dict(), learner.network.state_dict()
    for name, value in learner.teacher.network.state_dict().items():
        average = 0.9 * old[name] + 0.1 * new[name]
        expected = average if value.is_floating_point() else new[name]
        assert torch.allclose(value, expected, atol=1e-6), name


def test_a_teacher_starts_as_a_copy_and_stays_in_evaluation_mode_without_gradients() -> None:
    learner = trained(0)
    assert learner.teacher is not None
    teacher = learner.teacher.network
    for weight, source in zip(teacher.parameters(), learner.network.parameters(), strict=True):
        assert torch.equal(weight, source)
        assert not weight.requires_grad
    train(learner, STREAM, 2)
    assert not any(module.training for module in teacher.modules())
    assert all(parameter.grad is None for parameter in teacher.parameters())


def test_fixed_directions_distill_the_posterior_of_the_seen_classes() -> None:
    fields = TEACHER | {"views": 1, "projection": 16}
    learner = build(AngularGaussianFixedDirections, 4, 12, {"seed": 1}, **fields)
    train(learner, STREAM, 2)
    target, output = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    seen = learner.seen.tolist()
    assert 0 < len(seen) < 4

    def posterior(p: Tensor) -> Tensor:
        return learner.log_density(F.normalize(p)[:, seen])

    expected = literal_distillation(posterior(target), posterior(output), 4.0)
    assert torch.allclose(learner.distillation_loss(target, output), expected, rtol=1e-4)


@pytest.mark.parametrize("predict_with", ["student", "teacher", "average"])
def test_predict_with_selects_the_weights(predict_with: str) -> None:
    learner = trained(3, predict_with=predict_with)
    assert learner.teacher is not None
    student = dict(learner.network.named_parameters())
    teacher = dict(learner.teacher.network.named_parameters())
    for name, weight in learner.predictor.named_parameters():
        average = (student[name] + teacher[name]) / 2
        expected = {"student": student[name], "teacher": teacher[name], "average": average}
        assert torch.allclose(weight, expected[predict_with], atol=1e-6)


def test_new_classes_widen_the_teacher_too() -> None:
    learner = trained(8, classes=None)
    assert learner.teacher is not None
    outputs = int(learner.seen.max()) + 1
    assert learner.teacher.network.outputs == learner.network.outputs == outputs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agd-fd", "er", "er-ace", "derpp", "scr", "pcr", "ocm", "dvc"])
def test_methods_with_a_teacher_pass_the_contract(name: str) -> None:
    fields = TEACHER | ({"views": 1} if name == "agd-fd" else {})
    check_method(name, METHODS[name].Config(predict_with="average", **fields))


@pytest.mark.parametrize("momentum", [1.0, -0.1, 2.0, float("nan")])
def test_an_invalid_momentum_raises(momentum: float) -> None:
    message = rf"^teacher_momentum {momentum} is out of range: give a number in \[0, 1\)$"
    with pytest.raises(SteradError, match=message):
        trained(0, teacher_momentum=momentum)


def test_a_teacher_with_momentum_zero_is_a_copy() -> None:
    learner = trained(3, teacher_momentum=0.0)
    assert learner.teacher is not None
    teacher = learner.teacher.network
    assert all(map(torch.equal, teacher.parameters(), learner.network.parameters()))


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("teacher_weight", -1.0, r"a number in \[0, 1e\+06\]"),
        ("teacher_temperature", 0.0, r"a number in \(0, 1e\+06\]"),
    ],
)
def test_an_invalid_weight_or_temperature_raises(name: str, value: float, rule: str) -> None:
    fields: dict[str, Any] = {name: value}
    with pytest.raises(SteradError, match=f"^{name} {value} is out of range: give {rule}$"):
        trained(0, **fields)


@pytest.mark.parametrize(("name", "value"), [("predict_with", "teacher"), ("teacher_weight", 2.0)])
def test_fields_of_a_teacher_raise_without_one(name: str, value: Any) -> None:
    with pytest.raises(
        SteradError, match=f"{name}={value} has no effect without teacher: set teacher=ema"
    ):
        build("er", **{name: value})
