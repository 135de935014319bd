"""The whole step of LUMP against a slow, literal transcription of its algorithm."""

import copy
from typing import Any

import pytest
import torch

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.lump import LUMP, LUMPConfig
from sterad.streams import Clear, Stream


def learner(memory: int = 30, **fields: Any) -> LUMP:
    problem = Problem((1, 8, 8), 6, memory=memory, width=2, seed=3)
    return build_learner(LUMP, LUMPConfig(**fields), problem)


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=20, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def share(made: LUMP) -> float:
    """Return λ, the share of the new image, as the next mixture draws it."""
    return made.mix(torch.zeros(1, 1), torch.ones(1, 1)).item()


def test_one_step_is_the_algorithm_of_the_paper() -> None:
    feed, made = stream(), learner()
    assert made.observe(feed.batch(0)) is None, "nothing is learned while the memory is empty"
    made.observe(feed.batch(1))
    made.engine.optimizer.state.clear()  # no momentum, so that a step is one gradient
    twin, before = copy.deepcopy(made), made.images
    loss = made.observe(feed.batch(2))

    old, new, weight = twin.memory.sample(10), feed.batch(2), share(twin)
    mixed = torch.stack([weight * b + (1 - weight) * a for a, b in zip(old.x, new.x, strict=True)])
    views = twin.augmentation(torch.cat([mixed, mixed]), twin.rng["views"]).chunk(2)
    rows = [row for view in views for row in twin.network.head(twin.network.encoder(view))]
    z = [row / row.norm() for row in rows]
    expected = torch.tensor(0.0)
    for i in range(20):
        others = torch.stack([(z[i] @ z[a] / 0.07).exp() for a in range(20) if a != i])
        other_view = z[(i + 10) % 20]
        expected = expected - ((z[i] @ other_view / 0.07).exp() / others.sum()).log() / 20
    expected.backward()
    assert loss is not None
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
        assert theirs.grad is not None
        assert torch.allclose(ours, theirs - 0.001 * (theirs.grad + 1e-4 * theirs), atol=1e-6)
    assert made.images - before == 20
    assert len(made.memory) == 30


def test_labels_teach_nothing() -> None:
    feed, one, other = stream(), learner(), learner()
    for step in range(3):
        batch = feed.batch(step)
        one.observe(batch)
        other.observe(type(batch)(batch.x, batch.y.flip(0)))
    for first, second in zip(one.network.parameters(), other.network.parameters(), strict=True):
        assert torch.equal(first, second)


def test_shares_follow_the_symmetric_beta_law() -> None:
    made = learner()
    draws = torch.tensor([share(made) for _ in range(4000)])
    assert draws.min() >= 0
    assert draws.max() <= 1
    assert draws.mean().item() == pytest.approx(0.5, abs=0.02)
    assert draws.var().item() == pytest.approx(1 / (4 * (2 * 0.4 + 1)), abs=0.005)


def test_partners_that_are_too_few_serve_again() -> None:
    made, old = learner(memory=3), torch.tensor([[1.0], [2.0], [3.0]])
    mixed = made.mix(old, torch.zeros(7, 1)).squeeze(1)
    assert torch.allclose(mixed / mixed[0], torch.tensor([1.0, 2, 3, 1, 2, 3, 1]))
    feed = stream()
    for step in range(3):
        made.observe(feed.batch(step))
    assert made.images == 2 * 20


def test_settings() -> None:
    config = METHODS["lump"].Config()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.001, 0.9)
    assert (config.alpha, config.views, config.temperature) == (0.4, 2, 0.07)
    assert (config.projection, config.head, config.classifier) == (128, "mlp", "nearest-mean")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"alpha": 0.0}, r"alpha 0.0 is out of range: give a number in \(0, 1e\+06\]$"),
        ({"alpha": float("nan")}, r"alpha nan is out of range: give a number in \(0, 1e\+06\]$"),
        ({"views": 1}, "views 1 is out of range: give an integer from 2 to 1,000$"),
        ({"temperature": -1.0}, r"temperature -1.0 is out of range: give a number in \(0, 1e"),
        ({"classifier": "head"}, "unknown classifier 'head'"),
    ],
)
def test_bad_values_are_refused_in_words(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SteradError, match=said):
        learner(**fields)
