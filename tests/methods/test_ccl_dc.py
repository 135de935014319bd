"""CCL-DC: one whole step of two literal networks, predictions, growth and refusals."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sterad import OnlineClassifier
from sterad.encoders import Network
from sterad.encoders.peers import PeerEncoders, PeerHeads
from sterad.errors import SteradError
from sterad.methods import Replay
from sterad.methods.ccl_dc import CCLDC
from sterad.streams import Batch
from tests.methods.scaffold import (
    assert_resumes,
    build,
    count_images,
    literal_cross_entropy,
    open_stream,
    random_images,
    take_step,
    train,
)
from tests.methods.test_chain import literal_divergence, literal_views

STREAM = open_stream()
SMALL: dict[str, Any] = {"memory_batch": 4}


def peers_of(learner: Replay) -> tuple[nn.Module, nn.Module]:
    """Return copies of both networks, each with an encoder and a head of its own."""
    network = copy.deepcopy(learner.network)
    encoders, heads = network.encoder, network.head
    assert isinstance(encoders, PeerEncoders)
    assert isinstance(heads, PeerHeads)
    first, second = (nn.Sequential(*pair) for pair in zip(encoders.peers, heads.peers, strict=True))
    return first, second


def literal_loss(own: list[Tensor], other: list[Tensor], labels: list[int]) -> Tensor:
    """Return the loss of one network; outputs are of the view, and of x_0 to x_3."""
    loss = 0.5 * literal_cross_entropy(own[0], labels)
    o = [one.detach() for one in other]
    for output in own[1:]:
        loss = loss + 0.5 * literal_cross_entropy(output, labels)
    for harder, easier in ((o[2], own[1]), (o[3], own[2]), (o[4], own[3]), (o[4], own[4])):
        loss = loss + 2 * literal_divergence(harder, easier, 4.0)
    return loss


def test_one_step_equals_two_networks_with_an_optimizer_each() -> None:
    learner = build(CCLDC, **SMALL)
    train(learner, STREAM, 1)
    networks, rngs = peers_of(learner), copy.deepcopy(learner.rng)
    optimizers = [
        torch.optim.AdamW(one.parameters(), lr=5e-4, weight_decay=1e-4) for one in networks
    ]
    batch, stored = STREAM.batch(1), copy.deepcopy(learner.memory).sample(4)
    both = Batch.concatenate(stored, batch)
    views = [learner.augmentation(both.x, rngs["views"])]
    views += literal_views(both.x, rngs["chain"], 3, 15)
    outputs = [[network(view) for view in views] for network in networks]
    labels = both.y.tolist()
    losses = [
        literal_loss(outputs[0], outputs[1], labels),
        literal_loss(outputs[1], outputs[0], labels),
    ]
    for loss, optimizer in zip(losses, optimizers, strict=True):
        loss.backward()
        optimizer.step()
    assert torch.allclose(take_step(learner, batch), losses[0] + losses[1], rtol=1e-4)
    for network, stepped in zip(peers_of(learner), networks, strict=True):
        # The first step of AdamW is lr · sign of the gradient, which rounding decides near 0.
        pairs = zip(network.parameters(), stepped.parameters(), strict=True)
        close = torch.cat([(a - b).abs().flatten() < 1e-5 for a, b in pairs])
        assert close.float().mean() > 0.99
        for buffer, expected in zip(network.buffers(), stepped.buffers(), strict=True):
            assert torch.allclose(buffer.float(), expected.float(), atol=1e-5)


def test_gradients_equal_those_of_the_literal_losses() -> None:
    learner = build(CCLDC, **SMALL, optimizer="sgd", momentum=0, weight_decay=0, lr=0.01)
    train(learner, STREAM, 2)
    networks, rngs = peers_of(learner), copy.deepcopy(learner.rng)
    batch, stored = STREAM.batch(2), copy.deepcopy(learner.memory).sample(4)
    both = Batch.concatenate(stored, batch)
    views = [learner.augmentation(both.x, rngs["views"])]
    views += literal_views(both.x, rngs["chain"], 3, 15)
    outputs = [[network(view) for view in views] for network in networks]
    labels = both.y.tolist()
    literal_loss(outputs[0], outputs[1], labels).backward()
    literal_loss(outputs[1], outputs[0], labels).backward()
    learner.observe(batch)
    for network, before in zip(peers_of(learner), networks, strict=True):
        for weight, start in zip(network.parameters(), before.parameters(), strict=True):
            assert start.grad is not None
            assert torch.allclose(weight, start - 0.01 * start.grad, atol=1e-5)


def test_the_networks_differ_in_their_first_weights() -> None:
    first, second = peers_of(build(CCLDC))
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert one.shape == other.shape
        assert one.dim() < 2 or not torch.equal(one, other)


@pytest.mark.parametrize("ensemble", [True, False])
def test_both_networks_predict_or_the_first_one(ensemble: bool) -> None:
    learner = build(CCLDC, **SMALL, ensemble=ensemble)
    train(learner, STREAM, 3)
    x = random_images(7)
    first, second = (one.eval()(x)[:, learner.seen] for one in peers_of(learner))
    expected = (first + second) / 2 if ensemble else first
    scores, labels = learner.scores(x)
    assert torch.equal(labels, learner.seen)
    assert torch.allclose(scores, expected, atol=1e-4)


def test_a_step_passes_five_views_through_both_networks() -> None:
    learner = build(CCLDC, **SMALL)
    assert learner.observe(STREAM.batch(0)) is None
    assert count_images(learner, STREAM.batch(1)) == 2 * 5 * 14


def test_both_heads_grow_and_the_state_resumes() -> None:
    learner, fresh = (build(CCLDC, classes=None, **SMALL) for _ in range(2))
    train(learner, STREAM, 4)
    outputs = int(learner.seen[-1]) + 1
    assert isinstance(learner.network, Network)
    for one in peers_of(learner):
        assert one(random_images(2)).shape == (2, outputs)
    assert_resumes(learner, fresh, STREAM.batch(4), STREAM.batch(5))


def test_a_teacher_is_refused() -> None:
    with pytest.raises(SteradError, match="ccl-dc teach each other and have no other teacher"):
        build(CCLDC, teacher="ema")


def test_there_is_no_file_of_weights_for_two_encoders(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((20, 1, 8, 8)), np.arange(20) // 10
    fields: dict[str, Any] = {"encoder": "mlp", "width": 2, "classifier": "nearest-mean"}
    classifier = OnlineClassifier("ccl-dc", 10, **fields).partial_fit(x, y)
    with pytest.raises(SteradError, match="for one encoder, and ccl-dc has two"):
        classifier.export(tmp_path / "model.safetensors")
