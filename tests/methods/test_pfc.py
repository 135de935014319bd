"""The whole step of PFC against a slow, literal transcription of its network and algorithm."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sterad.data.synthetic import Synthetic
from sterad.encoders import Network
from sterad.encoders.heads import last_layer
from sterad.encoders.resnet import PreactivationResNet18, ResNet18
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.pfc import PFC, PFCConfig
from sterad.streams import Batch, Clear, Stream


def problem(classes: int | None = 6, memory: int = 30, encoder: str = "resnet18") -> Problem:
    return Problem((1, 8, 8), classes, memory=memory, width=2, seed=3, encoder=encoder)


def learner(classes: int | None = 6, memory: int = 30, **fields: Any) -> PFC:
    return build_learner(PFC, PFCConfig(**fields), problem(classes, memory))


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=20, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def images(n: int) -> Tensor:
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def fixed(network: Network) -> Tensor:
    layer = last_layer(network.head)
    assert layer is not None
    return layer.weight


def simplex(classes: int) -> Tensor:
    """Return the vertices by the published construction, a vertex at a time."""
    m = classes - 1
    vertices = [[float(i == j) for j in range(m)] for i in range(m)]
    vertices.append([(1 - math.sqrt(1 + m)) / m] * m)
    center = [sum(vertex[j] for vertex in vertices) / classes for j in range(m)]
    shifted = [[value - c for value, c in zip(vertex, center, strict=True)] for vertex in vertices]
    return torch.tensor([[v / math.hypot(*vertex) for v in vertex] for vertex in shifted])


def test_the_network_is_preactivated_with_a_linear_layer_and_a_frozen_simplex() -> None:
    made = learner()
    assert isinstance(made.network.encoder, PreactivationResNet18)
    assert isinstance(made.network.head, nn.Sequential)
    linear, rows = made.network.head[0], fixed(made.network)
    assert isinstance(linear, nn.Linear)
    assert linear.out_features == 5
    assert made.network.outputs == 6
    assert torch.allclose(rows, simplex(6), atol=1e-6)
    products = rows @ rows.T
    assert torch.allclose(products, torch.full((6, 6), -0.2).fill_diagonal_(1), atol=1e-6)


def test_one_step_is_experience_replay_on_that_network() -> None:
    feed, made = stream(), learner(memory_batch=4)
    assert made.observe(feed.batch(0)) is None, "nothing is learned while the memory is empty"
    twin = copy.deepcopy(made)
    loss = made.observe(feed.batch(1))

    kept, new = twin.memory.sample(4), feed.batch(1)
    x, y = torch.cat([kept.x, new.x]), torch.cat([kept.y, new.y]).tolist()
    assert isinstance(twin.network.head, nn.Sequential)
    linear = twin.network.head[0]
    assert isinstance(linear, nn.Linear)
    h = twin.network.encoder(twin.augmentation(x, twin.rng["views"]))
    logits = (h @ linear.weight.T + linear.bias) @ simplex(6).T
    expected = torch.tensor(0.0)
    for row, label in zip(logits, y, strict=True):
        expected = expected - (row[label].exp() / row.exp().sum()).log() / len(y)
    expected.backward()
    assert loss is not None
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
        if theirs.grad is None:
            assert theirs is fixed(twin.network)
            assert torch.equal(ours, theirs), "the simplex never moves"
        else:
            stepped = theirs - 0.1 * (theirs.grad + 1e-4 * theirs)
            assert torch.allclose(ours, stepped, atol=1e-5)


def test_a_step_shows_64_and_10_images_once() -> None:
    feed, made = stream(), learner(memory=100)
    for step in range(7):
        made.observe(feed.batch(step))
    before = made.images
    made.observe(feed.batch(7))
    assert made.images - before == 64 + 10


def test_settings_are_those_of_experience_replay_with_the_step_size_of_a_grid() -> None:
    config = METHODS["pfc"].Config()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.1, 0.0)
    assert (config.weight_decay, config.augmentation, config.views) == (1e-4, "full", 1)
    assert config.classifier == "head"


def test_only_resnet18_is_replaced_and_only_if_wanted() -> None:
    assert isinstance(learner(preactivation=False).network.encoder, ResNet18)
    chosen = build_learner(PFC, PFCConfig(), problem(encoder="mlp"))
    assert type(chosen.network.encoder).__name__ == "MLP"
    assert chosen.problem.encoder == "mlp"


@pytest.mark.parametrize("classes", [1, 2])
def test_few_classes_still_have_directions(classes: int) -> None:
    made, x = learner(classes), images(4)
    for _ in range(2):
        loss = made.observe(Batch(x, torch.arange(4) % classes))
    assert loss is not None
    assert bool(loss.isfinite())
    assert made.network.outputs == classes


def test_a_teacher_has_the_same_simplex_to_the_bit() -> None:
    feed, made = stream(), learner(teacher="ema", predict_with="average")
    for step in range(4):
        made.observe(feed.batch(step))
    assert made.teacher is not None
    for network in (made.network, made.teacher.network, made.predictor):
        assert torch.equal(fixed(network), fixed(learner().network))


def test_what_would_need_other_directions_is_refused() -> None:
    with pytest.raises(SteradError, match=r"number of classes in advance.* cannot grow"):
        learner(classes=None)
    made = learner(classes=4)
    with pytest.raises(SteradError, match="label 4 is outside the 4 declared classes"):
        made.observe(Batch(images(2), torch.tensor([0, 4])))
    with pytest.raises(SteradError, match="4 directions and cannot grow to 6"):
        made.load_state_dict(learner(classes=6).state_dict())
    with pytest.raises(SteradError, match="18 classes does not fit in 16 dimensions"):
        learner(classes=18, head="none")
