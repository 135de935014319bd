"""The whole step of PCR against a slow, literal transcription of its algorithm."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.encoders.heads import last_layer
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.pcr import PCR, PCRConfig
from sterad.streams import Batch, Clear, Stream


def learner(memory: int = 30, classes: int | None = 6, **fields: Any) -> PCR:
    problem = Problem((1, 8, 8), classes, memory=memory, width=2, seed=3)
    return build_learner(PCR, PCRConfig(**fields), problem)


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=20, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def weights(made: PCR) -> Tensor:
    layer = last_layer(made.network.head)
    assert layer is not None
    return layer.weight


def images(n: int) -> Tensor:
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def test_one_step_is_the_algorithm_of_the_paper() -> None:
    feed, made = stream(), learner(memory_batch=4)
    assert made.observe(feed.batch(0)) is None, "nothing is learned while the memory is empty"
    twin = copy.deepcopy(made)
    loss = made.observe(feed.batch(1))

    # Each image against the proxies of all images, which repeat as their classes do.
    kept, new = twin.memory.sample(4), feed.batch(1)
    x, y = torch.cat([kept.x, new.x]), torch.cat([kept.y, new.y]).tolist() * 2
    features = twin.network.encoder(torch.cat([twin.augmentation(x, twin.rng["views"]), x]))
    proxies = [weights(twin)[label] / weights(twin)[label].norm() for label in y]
    expected = torch.tensor(0.0)
    for feature, own in zip(features, proxies, strict=True):
        unit = feature / (feature.norm() + 1e-6)
        total = sum((unit @ proxy / 0.09).exp() for proxy in proxies)
        expected = expected + (torch.log(total) - unit @ own / 0.09) / len(y)
    expected.backward()
    constant = sum(math.log(y.count(label)) for label in y) / len(y)
    assert loss is not None
    assert loss.item() + constant == pytest.approx(expected.item(), rel=1e-4)
    for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
        assert theirs.grad is not None
        assert torch.allclose(ours, theirs - 0.1 * theirs.grad, atol=1e-4)
    absent = [label for label in range(6) if label not in y]
    assert absent
    assert torch.equal(weights(made)[absent], weights(twin)[absent])
    assert made.images == 2 * (4 + 10)


def test_a_step_shows_both_views_of_64_and_10_images() -> None:
    feed, made = stream(), learner(memory=100)
    for step in range(7):
        made.observe(feed.batch(step))
    before = made.images
    made.observe(feed.batch(7))
    assert made.images - before == 2 * (64 + 10)


def test_settings_are_those_of_its_code_but_for_the_memory_batch() -> None:
    config = METHODS["pcr"].Config()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.1, 0.0)
    assert (config.weight_decay, config.temperature, config.head) == (0.0, 0.09, "cosine")
    assert (config.augmentation, config.views, config.memory_batch) == ("full", 1, 64)


def test_proxies_are_added_when_new_labels_come() -> None:
    made, x = learner(classes=None), images(4)
    for labels in ([0, 1, 0, 1], [1, 2, 0, 0], [9, 1, 2, 0]):
        made.observe(Batch(x, torch.tensor(labels)))
    assert made.network.outputs == 10
    assert weights(made).shape == (10, 16)
    loaded = learner(classes=None)
    loaded.load_state_dict(made.state_dict())
    again = Batch(x, torch.tensor([9, 8, 11, 0]))
    first, second = made.observe(again), loaded.observe(again)
    assert first is not None
    assert second is not None
    assert torch.equal(first, second)
    assert made.immediate_scores(x)[1].tolist() == [0, 1, 2, 8, 9, 11]


def test_answers_and_lessons_are_cosines_over_the_temperature() -> None:
    made = learner(temperature=0.5, teacher="ema", teacher_temperature=4.0)
    made.seen = torch.tensor([1, 4])
    p, q = torch.rand(2, 3, 6, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(made.class_scores(p), p[:, [1, 4]] / 0.5)
    wanted, given = (p / 2).softmax(1), (q / 2).softmax(1)  # 0.5 times 4
    expected = 16 * (wanted * (wanted / given).log()).sum(1).mean()
    assert made.distance(p, q).item() == pytest.approx(expected.item(), rel=1e-4)


def test_bad_values_are_refused_in_words() -> None:
    told = r"^temperature 0\.0 is out of range: give a number in \(0, 1e\+06\]$"
    with pytest.raises(SteradError, match=told):
        learner(temperature=0.0)
    with pytest.raises(SteradError, match="unknown head 'proxy'"):
        learner(head="proxy")
