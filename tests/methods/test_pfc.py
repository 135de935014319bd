"""PFC: one whole step against a literal transcription of its network and algorithm."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import Network
from sterad.encoders.heads import last_layer
from sterad.encoders.resnet import PreactivationResNet18, ResNet18
from sterad.errors import SteradError
from sterad.methods.pfc import PFC, PFCConfig
from sterad.streams import Batch
from tests.methods.scaffold import (
    build,
    count_images,
    open_stream,
    random_images,
    take_step,
    train,
)


def fixed_rows(network: Network) -> Tensor:
    layer = last_layer(network.head)
    assert layer is not None
    return layer.weight


def linear_layer(learner: PFC) -> nn.Linear:
    assert isinstance(learner.network.head, nn.Sequential)
    linear = learner.network.head[0]
    assert isinstance(linear, nn.Linear)
    return linear


def literal_simplex(classes: int) -> Tensor:
    """Return the vertices by the published construction, vertex by vertex."""
    m = classes - 1
    vertices = [[float(i == j) for j in range(m)] for i in range(m)]
    vertices.append([(1 - math.sqrt(1 + m)) / m] * m)
    center = [sum(vertex[j] for vertex in vertices) / classes for j in range(m)]
    shifted = [[value - c for value, c in zip(vertex, center, strict=True)] for vertex in vertices]
    return torch.tensor([[v / math.hypot(*vertex) for v in vertex] for vertex in shifted])


def test_the_head_is_a_linear_layer_and_a_fixed_simplex_on_a_preactivation_resnet() -> None:
    learner = build(PFC)
    assert isinstance(learner.network.encoder, PreactivationResNet18)
    rows = fixed_rows(learner.network)
    assert linear_layer(learner).out_features == 5
    assert learner.network.outputs == 6
    assert torch.allclose(rows, literal_simplex(6), atol=1e-6)
    products = rows @ rows.T
    assert torch.allclose(products, torch.full((6, 6), -0.2).fill_diagonal_(1), atol=1e-6)


def test_one_step_equals_the_literal_algorithm() -> None:
    stream, learner = open_stream(per_class=20), build(PFC, memory_batch=4)
    assert learner.observe(stream.batch(0)) is None, "no step while the memory is empty"
    reference = copy.deepcopy(learner)
    loss = take_step(learner, stream.batch(1))

    stored, new = reference.memory.sample(4), stream.batch(1)
    x, y = torch.cat([stored.x, new.x]), torch.cat([stored.y, new.y]).tolist()
    linear = linear_layer(reference)
    h = reference.network.encoder(reference.augmentation(x, reference.rng["views"]))
    logits = (h @ linear.weight.T + linear.bias) @ literal_simplex(6).T
    expected = torch.tensor(0.0)
    for row, label in zip(logits, y, strict=True):
        expected = expected - (row[label].exp() / row.exp().sum()).log() / len(y)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    pairs = zip(learner.network.parameters(), reference.network.parameters(), strict=True)
    for parameter, start in pairs:
        if start.grad is None:
            assert start is fixed_rows(reference.network)
            assert torch.equal(parameter, start), "the simplex is fixed"
        else:
            stepped = start - 0.1 * (start.grad + 1e-4 * start)
            assert torch.allclose(parameter, stepped, atol=1e-5)


def test_images_per_step() -> None:
    stream, learner = open_stream(per_class=20), build(PFC, memory=100)
    train(learner, stream, 7)
    assert count_images(learner, stream.batch(7)) == 64 + 10


def test_default_settings_are_those_of_er_except_the_learning_rate() -> None:
    config = PFCConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.1, 0.0)
    assert (config.weight_decay, config.augmentation, config.views) == (1e-4, "full", 1)
    assert config.classifier == "head"


def test_preactivation_replaces_only_resnet18() -> None:
    assert isinstance(build(PFC, preactivation=False).network.encoder, ResNet18)
    learner = build(PFC, problem={"encoder": "mlp"})
    assert type(learner.network.encoder).__name__ == "MLP"
    assert learner.problem.encoder == "mlp"


@pytest.mark.parametrize("classes", [1, 2])
def test_one_or_two_classes_can_be_learned(classes: int) -> None:
    learner, x = build(PFC, classes), random_images(4)
    for _ in range(2):
        loss = learner.observe(Batch(x, torch.arange(4) % classes))
    assert loss is not None
    assert bool(loss.isfinite())
    assert learner.network.outputs == classes


def test_student_teacher_and_their_average_have_the_same_simplex() -> None:
    learner = build(PFC, teacher="ema", predict_with="average")
    train(learner, open_stream(per_class=20), 4)
    assert learner.teacher is not None
    for network in (learner.network, learner.teacher.network, learner.predictor):
        assert torch.equal(fixed_rows(network), fixed_rows(build(PFC).network))


def test_another_number_of_classes_raises() -> None:
    with pytest.raises(SteradError, match=r"number of classes in advance.* cannot grow"):
        build(PFC, classes=None)
    learner = build(PFC, classes=4)
    with pytest.raises(SteradError, match="label 4 is outside the 4 declared classes"):
        learner.observe(Batch(random_images(2), torch.tensor([0, 4])))
    with pytest.raises(SteradError, match="4 directions and cannot grow to 6"):
        learner.load_state_dict(build(PFC, classes=6).state_dict())
    with pytest.raises(SteradError, match="18 classes does not fit in 16 dimensions"):
        build(PFC, classes=18, head="none")
