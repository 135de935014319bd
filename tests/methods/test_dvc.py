"""DVC: one whole step against a literal transcription of its loss and retrieval."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network, ResNet18, build_network
from sterad.errors import SteradError
from sterad.methods.dvc import DVC, DVCConfig, gradient_norm, most_interfered
from sterad.streams import Batch
from tests.methods.scaffold import (
    assert_networks_close,
    assert_resumes,
    build,
    count_images,
    open_stream,
    random_images,
    take_step,
    train,
)


def trained(**fields: Any) -> DVC:
    """Return a learner after three steps."""
    learner = build(DVC, lr=0.02, **fields)
    train(learner, open_stream(), 3)
    return learner


def literal_loss(learner: DVC, x: Tensor, y: Tensor) -> Tensor:
    """Return the loss of raw images and their views, from one concatenated pass."""
    n = len(x)
    views = torch.cat([x, learner.augmentation(x, learner.rng["views"])])
    z = learner.network.head(learner.network.encoder(views))
    z, w = z[:n], z[n:]
    q = learner.qnet(z, w)
    P, W, Q = (torch.exp(v) / torch.exp(v).sum(1, keepdim=True) for v in (z, w, q))
    total = torch.tensor(0.0)
    for i in range(n):
        total = total - (P[i, y[i]].log() + W[i, y[i]].log()) / (2 * n)
    for distribution in (P, W, Q):
        mean = distribution.sum(0) / n
        mean = torch.clamp(mean / mean.sum(), min=2.2e-16)
        total = total + (mean * mean.log()).sum() / 3
    gap = torch.cat([(Q - P).abs(), (Q - W).abs()])
    return total + learner.config.consistency * gap.mean()


def test_one_step_equals_the_literal_algorithm() -> None:
    learner = trained(memory_batch=5, candidates=12)
    reference, images = copy.deepcopy(learner), learner.images
    batch = open_stream().batch(3)
    loss = take_step(learner, batch)

    reference.engine.optimizer.zero_grad()
    stream_loss = literal_loss(reference, batch.x, batch.y)
    stream_loss.backward()
    candidates = reference.memory.sample(12)
    stepped = copy.deepcopy(reference.network)
    pairs = zip(stepped.parameters(), reference.network.parameters(), strict=True)
    with torch.no_grad():
        for weight, source in pairs:
            assert source.grad is not None
            weight.sub_(0.02 * source.grad)
    scores = []
    for model in (stepped, reference.network):
        model.eval()
        with torch.no_grad():
            h, z = model.features_and_outputs(candidates.x)
        error = (z.softmax(1) - F.one_hot(candidates.y, 6)).abs().sum(1)
        scores.append(error * h.abs().sum(1))
        model.train()
    selected = (scores[0] - scores[1]).argsort(descending=True)[:5]
    memory_loss = literal_loss(reference, candidates.x[selected], candidates.y[selected])
    memory_loss.backward()
    reference.engine.optimizer.step()

    assert loss.item() == pytest.approx((stream_loss + memory_loss).item(), rel=1e-5)
    assert learner.images - images == 20 + 2 * 12 + 2 * 5
    assert_networks_close(learner.network, reference.network, 1e-5, buffer_atol=1e-6)


def test_retrieve_selects_from_the_candidates() -> None:
    learner = trained(memory_batch=5, candidates=30)
    everything = {tuple(image.flatten().tolist()) for image in learner.memory.sample(30).x}
    retrieved = learner.retrieve(open_stream().batch(3))
    assert len(retrieved) == 5
    assert {tuple(image.flatten().tolist()) for image in retrieved.x} < everything


def test_a_small_memory_is_retrieved_completely_without_a_virtual_step() -> None:
    learner, stream = build(DVC, lr=0.02), open_stream()
    assert count_images(learner, stream.batch(0)) == 20, "two views of the stream batch"
    assert count_images(learner, stream.batch(1)) == 20 + 20, "10 stored images, fewer than 64"


def test_images_per_step_with_default_settings() -> None:
    learner, x = build(DVC, classes=4, memory=200), random_images(200)
    learner.memory.update(Batch(x, torch.arange(200) % 4))
    assert count_images(learner, Batch(x[:10], torch.arange(10) % 4)) == 20 + 128 + 2 * 128


def test_default_settings_are_those_of_the_released_code() -> None:
    config = DVCConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.1, 0.9)
    assert (config.weight_decay, config.augmentation, config.head) == (0.0, "full", "linear")
    assert (config.memory_batch, config.candidates, config.consistency) == (64, 128, 4.0)


@pytest.mark.parametrize("teacher", ["none", "ema"])
def test_a_learner_with_a_wider_head_and_qnet_resumes_bit_for_bit(teacher: str) -> None:
    learner, fresh = (build(DVC, None, lr=0.02, teacher=teacher) for _ in range(2))
    x = random_images(6)
    learner.observe(Batch(x, torch.tensor([0, 1, 0, 1, 0, 1])))
    learner.observe(Batch(x, torch.tensor([4, 1, 0, 1, 0, 2])))
    assert (learner.network.outputs, len(learner.qnet.table)) == (5, 5)
    groups = learner.engine.optimizer.param_groups
    optimized = {id(p) for group in groups for p in group["params"]}
    assert optimized == {id(p) for p in learner.network.parameters()}
    assert_resumes(learner, fresh, Batch(x, torch.tensor([4, 6, 0, 1, 0, 2])))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"candidates": 50}, "candidates 50 for memory_batch 64 leave nothing to select"),
        ({"views": 2}, "views 2"),
        ({"memory_batch": 0}, "memory_batch 0 is out of range: give an integer from 1 to 100,000$"),
    ],
)
def test_invalid_fields_raise(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build(DVC, **fields)


@pytest.fixture
def network() -> Network:
    """Return a network whose running statistics differ from the initial ones."""
    rng = torch.Generator().manual_seed(1)
    network = build_network(lambda: ResNet18((1, 8, 8), 2), "linear", 5, rng)
    network(random_images(32, seed=2))
    return network


def gradient_norms(model: Network, x: Tensor, y: Tensor) -> Tensor:
    """Return the L1 norms of the head's weight gradients, one backward pass per sample."""
    model.eval()
    norms = []
    for image, label in zip(x.split(1), y.split(1), strict=True):
        weight = model.head.get_parameter("weight")
        (gradient,) = torch.autograd.grad(F.cross_entropy(model(image), label), weight)
        norms.append(gradient.abs().sum())
    return torch.stack(norms)


def test_most_interfered_equals_single_gradients_around_an_optimizer_step(network: Network) -> None:
    x, y, lr = random_images(20, seed=2), torch.arange(20) % 5, 0.5
    F.cross_entropy(network(x[:6]), y[:6]).backward()
    stepped = copy.deepcopy(network)
    for parameter, source in zip(stepped.parameters(), network.parameters(), strict=True):
        parameter.grad = None if source.grad is None else source.grad.clone()
    torch.optim.SGD(stepped.parameters(), lr=lr).step()
    increases = gradient_norms(stepped, x, y) - gradient_norms(network, x, y)
    network.train()
    selected = most_interfered(network, x, y, lr, 7)
    assert selected.tolist() == increases.argsort(descending=True)[:7].tolist()


def test_most_interfered_changes_neither_network_nor_gradients(network: Network) -> None:
    x, y = random_images(20, seed=2), torch.arange(20) % 5
    F.cross_entropy(network(x[:6]), y[:6]).backward()
    before = copy.deepcopy(network.state_dict())
    gradients = [p.grad.clone() for p in network.parameters() if p.grad is not None]
    most_interfered(network, x, y, 0.5, 7)
    assert network.training
    assert before.keys() == network.state_dict().keys()
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    after = [p.grad for p in network.parameters() if p.grad is not None]
    assert all(torch.equal(a, b) for a, b in zip(gradients, after, strict=True))


def test_most_interfered_computes_both_passes_in_the_precision_of_the_network(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = random_images(8, seed=2), torch.arange(8) % 5
    network.precision = torch.bfloat16
    F.cross_entropy(network(x), y).backward()
    features: list[Tensor] = []

    def record(h: Tensor, z: Tensor, y: Tensor) -> Tensor:
        features.append(h)
        return gradient_norm(h, z, y)

    monkeypatch.setattr("sterad.methods.dvc.gradient_norm", record)
    most_interfered(network, x, y, lr=0.0, n=3)
    assert torch.equal(*features), "a step with lr=0 changes nothing"
