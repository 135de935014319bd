"""The momentum teacher: one whole step against a literal one, its state, and predictions."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import EncoderOptions
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.defaults import changed_fields
from sterad.methods import METHODS, Replay
from sterad.methods.agd_fd import AngularGaussianFixedDirections
from sterad.methods.base.teacher import Teacher, distillation
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


@pytest.mark.parametrize(
    ("inputs", "start", "view_loss"),
    [("view", "zero", 1.0), ("both", "copy", 0.5), ("view", "copy", 0.0)],
)
def test_one_step_of_er_with_a_teacher_equals_the_literal_algorithm(
    inputs: str, start: str, view_loss: float
) -> None:
    teacher_fields: dict[str, Any] = {"teacher_inputs": inputs, "teacher_start": start}
    learner = trained(
        3, teacher_view_loss=view_loss, weight_decay=0.0, momentum=0.0, **teacher_fields
    )
    assert learner.teacher is not None
    student, teacher = copy.deepcopy(learner.network), copy.deepcopy(learner.teacher.network)
    batch, stored = STREAM.batch(3), copy.deepcopy(learner.memory).sample(4)
    both, rng = Batch.concatenate(stored, batch), copy.deepcopy(learner.rng["views"])
    x = both.x
    own_view, view = learner.augmentation(x, rng), learner.augmentation(x, rng)
    loss = F.cross_entropy(student(own_view), both.y)
    output = student(view)
    with torch.no_grad():
        targets = [teacher.train()(one) for one in ((view, x) if inputs == "both" else (view,))]
    if inputs == "both":
        distances = [literal_distillation(one, output, 4.0) for one in targets]
    else:
        outputs = output, student(x)
        distances = [literal_distillation(targets[0], one, 4.0) for one in outputs]
    loss = loss + view_loss * F.cross_entropy(output, both.y)
    (loss + 5.5 / 2 * (distances[0] + distances[1])).backward()
    assert count_images(learner, batch) == (1 + 2 + 1) * 9, "method, and three passes on the view"
    for weight, before in zip(learner.network.parameters(), student.parameters(), strict=True):
        assert before.grad is not None
        assert torch.allclose(weight, before - 0.01 * before.grad, atol=1e-5)
    correction = 1 - 0.1**1 if start == "zero" else 1  # k = 1 in the first 19 updates
    found = learner.teacher.network.named_parameters()
    old, new = dict(teacher.named_parameters()), dict(learner.network.named_parameters())
    for name, value in found:
        expected = 0.9 * old[name] + 0.1 / correction * new[name]
        assert torch.allclose(value, expected, atol=1e-6), name
    # In training mode the teacher has its own running statistics.
    for name, buffer in learner.teacher.network.named_buffers():
        assert torch.allclose(buffer.float(), teacher.get_buffer(name).float(), atol=1e-5), name


def test_the_correction_of_the_update_changes_every_ten_updates() -> None:
    network = build("er", problem={"encoder": "mlp"}).network
    teacher = Teacher(network, 0.6, "zero")
    expected = 0.4 / 0.6 * next(network.parameters()).detach().clone()
    for update in range(1, 41):
        teacher.follow(network)
        k = max(1, update // 10)
        expected = 0.6 * expected + 0.4 / (1 - 0.4**k) * next(network.parameters())
        assert torch.allclose(next(teacher.network.parameters()), expected, rtol=1e-5)


def test_a_teacher_starts_almost_zero_or_as_a_copy_without_gradients() -> None:
    for start, factor in (("zero", 0.1 / 0.9), ("copy", 1.0)):
        learner = trained(0, teacher_start=start)
        assert learner.teacher is not None
        teacher = learner.teacher.network
        for weight, source in zip(teacher.parameters(), learner.network.parameters(), strict=True):
            assert torch.allclose(weight, factor * source)
            assert not weight.requires_grad
        train(learner, STREAM, 2)
        assert all(parameter.grad is None for parameter in teacher.parameters())


def test_weights_that_are_not_trained_are_copies_in_the_teacher() -> None:
    options = EncoderOptions(train_from="stages.3")
    learner = build("er", problem={"encoder_options": options}, **TEACHER)
    train(learner, open_stream(), 2)
    assert learner.teacher is not None
    copies = dict(learner.teacher.network.named_parameters())
    frozen = [n for n, one in learner.network.named_parameters() if not one.requires_grad]
    assert 0 < len(frozen) < len(copies)
    for name in frozen:
        assert torch.equal(copies[name], learner.network.get_parameter(name))


@pytest.mark.parametrize("name", ["agd-fd", "er", "pcr", "scr"])
def test_the_loss_of_the_view_is_the_loss_of_the_method(name: str) -> None:
    # Without another view and with the same images the method's own loss is the same.
    learner = build(name, 4, 12, views=0, augmentation="none", memory_batch=4)
    train(learner, STREAM, 2)
    batch, stored = STREAM.batch(2), learner.memory.sample(4)
    both = Batch.concatenate(stored, batch)
    own = learner.loss(stored, batch)
    assert torch.allclose(learner.loss_of_outputs(learner.network(both.x), both.y), own, rtol=1e-5)


def test_fixed_directions_distill_the_posterior_of_the_seen_classes() -> None:
    fields = TEACHER | {"views": 1, "projection": 16}
    learner = build(AngularGaussianFixedDirections, 4, 12, {"seed": 1}, **fields)
    train(learner, STREAM, 2)
    target, output = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    seen = learner.seen.tolist()
    assert 0 < len(seen) < 4

    def posterior(p: Tensor) -> Tensor:
        return learner.log_density(F.normalize(p)[:, seen])

    expected = 5 * literal_distillation(posterior(target), posterior(output), 4.0)
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
    check_method(name, METHODS[name].Config(**fields))


@pytest.mark.parametrize("momentum", [1.0, -0.1, 2.0, float("nan")])
def test_an_invalid_momentum_raises(momentum: float) -> None:
    message = rf"^teacher_momentum {momentum} is out of range: give a number in \[0, 1\)$"
    with pytest.raises(SteradError, match=message):
        trained(0, teacher_momentum=momentum)


def test_the_average_predicts_by_default_if_there_is_a_teacher() -> None:
    assert (config := METHODS["er"].Config(teacher="ema")).predict_with == "average"
    assert METHODS["er"].Config(predict_with="student", teacher="ema").predict_with == "student"
    assert METHODS["er"].Config().predict_with == "student"
    without, with_teacher = RunConfig.of(method="er"), RunConfig.of(method="er", teacher="ema")
    assert changed_fields(without) == []
    assert changed_fields(with_teacher) == ["method.teacher"]
    assert with_teacher.method.fields == config
    assert RunConfig.from_dict(with_teacher.to_dict()) == with_teacher
    chosen = RunConfig.of(method="er", teacher="ema", predict_with="student")
    assert changed_fields(chosen) == ["method.teacher", "method.predict_with"]


def test_a_teacher_with_momentum_zero_is_a_copy() -> None:
    with pytest.raises(SteradError, match="teacher_momentum=0 divides by zero"):
        trained(0, teacher_momentum=0.0)
    learner = trained(3, teacher_momentum=0.0, teacher_start="copy")
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
