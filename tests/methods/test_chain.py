"""The distillation chain: one whole step against a literal one, views, and refusals."""

import copy
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import METHODS, Replay
from sterad.methods.base.chain import DistillationChain
from sterad.streams import Batch
from sterad.testing import check_method
from sterad.views.geometry import draw_boxes, resized_crop
from sterad.views.rand_augment import RandAugment
from tests.methods.scaffold import build, count_images, open_stream, take_step, train

CHAIN: dict[str, Any] = {"chain_views": 3, "memory_batch": 4}
STREAM = open_stream()


def literal_views(x: Tensor, rng: torch.Generator, operations: int, magnitude: int) -> list[Tensor]:
    """Return the images and three views, each harder than the one before."""
    crop = resized_crop(x, draw_boxes(len(x), 8, 8, rng, 0.6))
    harder = RandAugment(operations=operations, magnitude=magnitude)
    second = harder(crop, rng)
    return [x, crop, second, harder(second, rng)]


def literal_divergence(target: Tensor, output: Tensor, temperature: float) -> Tensor:
    p, q = ((one / temperature).softmax(dim=1) for one in (target, output))
    return temperature**2 * (p * (p / q).log()).sum(dim=1).mean()


def test_one_step_of_er_with_a_chain_equals_the_literal_algorithm() -> None:
    fields: dict[str, Any] = {
        "chain_weight": 2.0,
        "chain_view_loss": 0.25,
        "chain_temperature": 3.0,
    }
    learner = build(
        "er", **CHAIN, **fields, chain_operations=2, chain_magnitude=9, momentum=0, weight_decay=0
    )
    train(learner, STREAM, 2)
    network, rngs = copy.deepcopy(learner.network), copy.deepcopy(learner.rng)
    batch, stored = STREAM.batch(2), copy.deepcopy(learner.memory).sample(4)
    both = Batch.concatenate(stored, batch)
    own = F.cross_entropy(network(learner.augmentation(both.x, rngs["views"])), both.y)
    outputs = [network(one) for one in literal_views(both.x, rngs["chain"], 2, 9)]
    loss = own
    for j in range(4):
        loss = loss + 0.25 * F.cross_entropy(outputs[j], both.y)
        if j > 0:
            loss = loss + 2.0 * literal_divergence(outputs[j].detach(), outputs[j - 1], 3.0)
    loss.backward()
    assert torch.allclose(take_step(learner, batch), loss, rtol=1e-4)
    for weight, start in zip(learner.network.parameters(), network.parameters(), strict=True):
        assert start.grad is not None
        assert torch.allclose(weight, start - 0.01 * start.grad, atol=1e-5)
    assert count_images(learner, STREAM.batch(3)) == (1 + 4) * 14


def test_fixed_directions_sum_the_divergences_of_posteriors() -> None:
    learner = build("agd-fd", views=1, projection=16, **CHAIN)
    train(learner, STREAM, 2)
    harder, easier = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    chain = chain_of(learner)
    found = chain.distances(learner, [harder], [easier])
    scores = [learner.class_scores(one) for one in (harder, easier)]
    assert torch.allclose(found, 5 * literal_divergence(scores[0], scores[1], 4.0), rtol=1e-4)


def chain_of(learner: Replay) -> DistillationChain:
    (chain,) = (one for one in learner.additions if isinstance(one, DistillationChain))
    return chain


def test_views_of_vectors_are_noise_on_noise() -> None:
    problem = {"input_shape": (7,), "encoder": "mlp"}
    learner = build("er", problem=problem, augmentation="noise", **CHAIN)
    x, rng = torch.rand(5, 7), copy.deepcopy(learner.rng["chain"])
    views = chain_of(learner).views_of(learner, x)
    for before, view in pairwise(views):
        assert torch.equal(view, learner.augmentation(before, rng))
    learner.observe(Batch(x, torch.arange(5)))
    learner.observe(Batch(x, torch.arange(5)))


def test_images_are_flipped_only_if_they_keep_their_class() -> None:
    x = torch.arange(8.0).expand(50, 1, 8, 8) / 8
    for flip in (False, True):
        learner = build("er", problem={"flip": flip}, **CHAIN)
        view = chain_of(learner).views_of(learner, x)[1]
        falls = view[:, 0, 0, 0] > view[:, 0, 0, -1]
        assert falls.any() == flip
        assert not falls.all()


@pytest.mark.parametrize(
    ("fields", "problem", "message"),
    [
        ({}, {"input_shape": (7,), "encoder": "mlp"}, r"\(7,\) have none with augmentation=full"),
        ({}, {"input_shape": (4, 8, 8)}, "images of 4 channels have none"),
        ({"chain_views": 0, "chain_weight": 2.0}, {}, "no effect without chain_views"),
    ],
)
def test_combinations_without_effect_are_refused(
    fields: dict[str, Any], problem: dict[str, Any], message: str
) -> None:
    with pytest.raises(SteradError, match=message):
        build("er", problem=problem, **(CHAIN | fields))


def test_methods_without_steps_or_directions_refuse_a_chain() -> None:
    with pytest.raises(SteradError, match="chain_views=3 adds to the steps on the stream"):
        build("gdumb", **CHAIN)
    with pytest.raises(
        SteradError, match="chain_views, flattening and nearest-direction need those of all"
    ):
        build("agd-fd", directions="moving", **CHAIN)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agd-fd", "er", "scr", "dvc"])
def test_methods_with_a_chain_pass_the_contract(name: str) -> None:
    fields = CHAIN | ({"views": 1} if name == "agd-fd" else {})
    check_method(name, METHODS[name].Config(**fields))


@pytest.mark.slow
def test_a_chain_and_a_teacher_pass_the_contract_together() -> None:
    config = METHODS["er"].Config(teacher="ema", review=True, retrieval="mir", **CHAIN)
    check_method("er", config)
