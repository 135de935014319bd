"""SCR: one whole step against a literal transcription of the algorithm.

LUMP is a subclass of SCR: what they share is tested here for both.
"""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.errors import SteradError
from sterad.methods.lump import LUMP
from sterad.methods.scr import SCR, SCRConfig
from sterad.streams import Batch
from tests.methods.scaffold import (
    assert_resumes,
    build,
    count_images,
    open_stream,
    random_images,
    take_step,
    train,
)

SCR_AND_LUMP = pytest.mark.parametrize("method", [SCR, LUMP])


def literal_loss(z: Tensor, labels: list[int]) -> Tensor:
    """Return the supervised contrastive loss, pair by pair."""
    losses = []
    for i in range(len(z)):
        total = sum(((z[i] @ z[a]) / 0.07).exp() for a in range(len(z)) if a != i)
        same = [p for p in range(len(z)) if p != i and labels[p] == labels[i]]
        logs = [(((z[i] @ z[p]) / 0.07).exp() / total).log() for p in same]
        losses.append(-sum(logs) / len(same))
    return torch.stack(losses).mean()  # type: ignore[arg-type]


@pytest.mark.parametrize("views", [1, 2])
def test_one_step_equals_the_literal_algorithm(views: int) -> None:
    stream, learner = open_stream(per_class=20), build(SCR, views=views, memory_batch=4)
    assert learner.observe(stream.batch(0)) is None, "no step while the memory is empty"
    reference = copy.deepcopy(learner)
    loss = take_step(learner, stream.batch(1))

    stored, new = reference.memory.sample(4), stream.batch(1)
    x, y = torch.cat([stored.x, new.x]), torch.cat([stored.y, new.y]).tolist()
    inputs = [reference.augmentation(x, reference.rng["views"]) for _ in range(views)] + [x]
    projections = [reference.network.head(reference.network.encoder(view)) for view in inputs]
    z = torch.cat([p / p.norm(dim=1, keepdim=True) for p in projections])
    assert z.shape == ((views + 1) * 14, 128)
    expected = literal_loss(z, y * (views + 1))
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    pairs = zip(learner.network.parameters(), reference.network.parameters(), strict=True)
    for parameter, start in pairs:
        assert start.grad is not None
        stepped = start - 0.01 * (start.grad + 1e-4 * start)  # the first step has no momentum
        assert torch.allclose(parameter, stepped, atol=1e-5)
    for buffer, wanted in zip(learner.network.buffers(), reference.network.buffers(), strict=True):
        assert torch.allclose(buffer.float(), wanted.float(), atol=1e-5)
    reference.memory.update(new)
    assert learner.memory.state_dict()["seen"] == reference.memory.state_dict()["seen"] == 20


def test_images_per_step() -> None:
    stream, learner = open_stream(per_class=20), build(SCR, memory=100)
    train(learner, stream, 7)
    assert count_images(learner, stream.batch(7)) == 2 * (64 + 10)


def test_default_settings_are_those_of_the_released_code() -> None:
    config = SCRConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.01, 0.9)
    assert (config.weight_decay, config.augmentation, config.views) == (1e-4, "full", 1)
    assert (config.temperature, config.projection, config.head) == (0.07, 128, "mlp")
    assert (config.classifier, config.memory_batch) == ("nearest-mean", 64)


def test_the_loss_of_single_images_per_class_is_zero() -> None:
    learner, x = build(SCR, views=0), random_images(3)
    learner.observe(Batch(x[:1], torch.tensor([0])))
    loss = take_step(learner, Batch(x[1:], torch.tensor([1, 2])))
    assert loss.item() == 0
    assert all(bool(p.isfinite().all()) for p in learner.network.parameters())


@SCR_AND_LUMP
def test_labels_beyond_the_projection_do_not_widen_it(method: type[SCR]) -> None:
    learner, fresh = (build(method, classes=None, projection=4) for _ in range(2))
    for labels in ([0, 1, 2], [7, 900, 7], [0, 900, 1]):
        learner.observe(Batch(random_images(3), torch.tensor(labels)))
    assert learner.network.outputs == 4
    learner.consolidate()
    assert learner.scores(random_images(2))[1].tolist() == [0, 1, 2, 7, 900]
    batch = Batch(random_images(3, seed=1), torch.tensor([1001, 7, 0]))
    assert_resumes(learner, fresh, batch)


@SCR_AND_LUMP
def test_immediate_scores_fit_the_class_means_to_the_current_memory(method: type[SCR]) -> None:
    learner, x = build(method, classes=None), random_images(6)
    for seed in range(3):
        learner.observe(Batch(random_images(6, seed), torch.tensor([0, 1, 2, 0, 1, 2])))
    scores, labels = learner.immediate_scores(x)
    learner.consolidate()
    expected, columns = learner.scores(x)
    assert torch.equal(scores, expected)
    assert labels.tolist() == columns.tolist() == [0, 1, 2]


@SCR_AND_LUMP
def test_the_distance_to_the_teacher_is_one_minus_the_cosine(method: type[SCR]) -> None:
    learner = build(method, classes=None, teacher="ema", teacher_weight=2.0)
    target, output = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    pairs = zip(normalize(target), normalize(output), strict=True)
    expected = sum(1 - float(a @ b) for a, b in pairs) / 5
    assert learner.distillation_loss(target, output).item() == pytest.approx(expected, abs=1e-6)
    assert learner.distillation_loss(target, 3 * target).item() == pytest.approx(0, abs=1e-6)
    for seed in range(3):
        loss = learner.observe(Batch(random_images(6, seed), torch.tensor([0, 1, 2, 0, 1, 2])))
    assert loss is not None
    assert bool(loss.isfinite())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": 0.0}, r"temperature 0.0 is out of range: give a number in \(0, 1e"),
        ({"projection": 0}, "projection 0 is out of range: give an integer from 1 to 65,536$"),
        ({"views": -1}, "views -1 is out of range: give an integer from 0 to 1,000$"),
        ({"classifier": "head"}, "unknown classifier 'head' .* known are knn, lda, linear-probe"),
        ({"augmentation": "ful"}, "did you mean 'full'"),
    ],
)
def test_invalid_fields_raise(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build(SCR, **fields)
