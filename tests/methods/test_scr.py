"""The whole step of SCR against a slow, literal transcription of its algorithm."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.scr import SCR, SCRConfig
from sterad.streams import Batch, Clear, Stream


def learner(memory: int = 30, classes: int | None = 6, **fields: Any) -> SCR:
    problem = Problem((1, 8, 8), classes, memory=memory, width=2, seed=3)
    return build_learner(SCR, SCRConfig(**fields), problem)


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=20, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def literal_loss(z: Tensor, labels: list[int]) -> Tensor:
    losses = []
    for i in range(len(z)):
        total = sum(((z[i] @ z[a]) / 0.07).exp() for a in range(len(z)) if a != i)
        same = [p for p in range(len(z)) if p != i and labels[p] == labels[i]]
        logs = [(((z[i] @ z[p]) / 0.07).exp() / total).log() for p in same]
        losses.append(-sum(logs) / len(same))
    return torch.stack(losses).mean()  # type: ignore[arg-type]


@pytest.mark.parametrize("views", [1, 2])
def test_one_step_is_the_algorithm_of_the_paper(views: int) -> None:
    feed, made = stream(), learner(views=views, memory_batch=4)
    assert made.observe(feed.batch(0)) is None, "nothing is learned while the memory is empty"
    twin = copy.deepcopy(made)
    loss = made.observe(feed.batch(1))

    kept, new = twin.memory.sample(4), feed.batch(1)
    x, y = torch.cat([kept.x, new.x]), torch.cat([kept.y, new.y]).tolist()
    shown = [twin.augmentation(x, twin.rng["views"]) for _ in range(views)] + [x]
    projections = [twin.network.head(twin.network.encoder(view)) for view in shown]
    z = torch.cat([p / p.norm(dim=1, keepdim=True) for p in projections])
    assert z.shape == ((views + 1) * 14, 128)
    expected = literal_loss(z, y * (views + 1))
    expected.backward()
    assert loss is not None
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
        assert theirs.grad is not None
        stepped = theirs - 0.01 * (theirs.grad + 1e-4 * theirs)  # the first step has no momentum
        assert torch.allclose(ours, stepped, atol=1e-5)
    for mine, statistic in zip(made.network.buffers(), twin.network.buffers(), strict=True):
        assert torch.allclose(mine.float(), statistic.float(), atol=1e-5)
    twin.memory.update(new)
    assert made.memory.state_dict()["seen"] == twin.memory.state_dict()["seen"] == 20


def test_a_step_shows_two_views_of_64_and_10_images() -> None:
    feed, made = stream(), learner(memory=100)
    for step in range(7):
        made.observe(feed.batch(step))
    before = made.images
    made.observe(feed.batch(7))
    assert made.images - before == 2 * (64 + 10)


def test_released_settings_are_the_defaults() -> None:
    config = METHODS["scr"].Config()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.01, 0.9)
    assert (config.weight_decay, config.augmentation, config.views) == (1e-4, "full", 1)
    assert (config.temperature, config.projection, config.head) == (0.07, 128, "mlp")
    assert (config.classifier, config.memory_batch) == ("nearest-mean", 64)


def test_a_single_view_of_singleton_classes_is_no_nan() -> None:
    made, x = learner(views=0), torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    made.observe(Batch(x[:1], torch.tensor([0])))
    loss = made.observe(Batch(x[1:], torch.tensor([1, 2])))
    assert loss is not None
    assert loss.item() == 0
    assert all(bool(p.isfinite().all()) for p in made.network.parameters())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"temperature": 0.0}, r"temperature 0.0 is out of range: give a number in \(0, 1e"),
        ({"projection": 0}, "projection 0 is out of range: give an integer from 1 to 65,536$"),
        ({"views": -1}, "views -1 is out of range: give an integer from 0 to 1,000$"),
        ({"classifier": "head"}, "unknown classifier 'head' .* known are knn, linear-probe"),
        ({"augmentation": "ful"}, "did you mean 'full'"),
    ],
)
def test_bad_values_are_refused_in_words(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SteradError, match=said):
        learner(**fields)
