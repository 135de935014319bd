"""Parallel forward passes have bit for bit the results of sequential ones."""

import copy
import gc
import threading
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from sterad.encoders import Network, ResNet18, build_network, make_encoder, make_head
from sterad.encoders.resnet import BatchNorm
from sterad.engine.parallel import ParallelForward

State = dict[str, Tensor]


def make_network(encoder: str = "resnet18", width: int = 2) -> Network:
    shape = (3, 16, 16) if encoder != "mlp" else (12,)
    rng = torch.Generator().manual_seed(0)
    return build_network(lambda: make_encoder(encoder, shape, width), "mlp", 8, rng)


def make_views(encoder: str = "resnet18") -> list[Tensor]:
    shape = (3, 16, 16) if encoder != "mlp" else (12,)
    rng = torch.Generator().manual_seed(1)
    return list(torch.rand(4, 5, *shape, generator=rng))


def backpropagate(
    network: Network, forward: Callable[[Network], Tensor]
) -> tuple[Tensor, State, State]:
    """Return outputs, gradients and buffers after one forward and backward pass."""
    z = forward(network)
    weight = torch.linspace(-1, 1, z.numel()).reshape(z.shape)
    (z * weight).sum().backward()
    grads = {k: w.grad for k, w in network.named_parameters() if w.grad is not None}
    return z.detach(), grads, dict(network.named_buffers())


def assert_equal(first: State, second: State, exact: bool = True) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        if exact:
            assert torch.equal(value, second[name]), name
        else:
            assert torch.allclose(value, second[name], rtol=1e-4, atol=1e-5), name


@pytest.mark.parametrize("encoder", ["resnet18", "preact-resnet18", "mlp"])
@pytest.mark.parametrize("unit", [True, False])
def test_the_number_of_threads_does_not_change_a_bit(encoder: str, unit: bool) -> None:
    network, x = make_network(encoder), make_views(encoder)
    threads_before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        runs = [
            backpropagate(
                copy.deepcopy(network), partial(ParallelForward(threads), inputs=x, unit=unit)
            )
            for threads in (1, 2, 3, 7)
        ]
    finally:
        torch.set_num_threads(threads_before)
    z, grads, buffers = runs[0]
    for other_z, other_grads, other_buffers in runs[1:]:
        assert torch.equal(z, other_z)
        assert_equal(grads, other_grads)
        assert_equal(buffers, other_buffers)


@pytest.mark.parametrize("encoder", ["resnet18", "mlp"])
def test_results_equal_those_of_the_network_itself(encoder: str) -> None:
    network, x = make_network(encoder), make_views(encoder)

    def sequential(network: Network) -> Tensor:
        return torch.cat([network(view, unit=True) for view in x])

    expected = backpropagate(copy.deepcopy(network), sequential)
    result = backpropagate(copy.deepcopy(network), partial(ParallelForward(2), inputs=x, unit=True))
    assert torch.allclose(expected[0], result[0], atol=1e-6)
    assert_equal(expected[1], result[1], exact=False)
    assert_equal(expected[2], result[2], exact=False)


def test_replicas_follow_the_weights_over_several_steps() -> None:
    network, parallel = make_network(), ParallelForward(2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(3):
        parallel(network, make_views(), unit=True).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    expected = ParallelForward(1)(copy.deepcopy(network), make_views(), unit=True)
    assert torch.equal(parallel(network, make_views(), unit=True), expected)


def test_a_replaced_head_is_used() -> None:
    network, parallel = make_network(), ParallelForward(2)
    assert parallel(network, make_views()).shape == (20, 8)
    network.head = make_head("linear", network.encoder.features, 11)
    z = parallel(network, make_views())
    z.sum().backward()
    assert z.shape == (20, 11)
    assert all(weight.grad is not None for weight in network.head.parameters())


@pytest.mark.parametrize("momenta", [(0.1, 0.3), (None, 0.1)])
def test_running_statistics_use_the_momentum_of_each_layer(
    momenta: tuple[float | None, ...],
) -> None:
    network = make_network()
    for index, layer in enumerate(m for m in network.modules() if isinstance(m, BatchNorm)):
        layer.momentum = momenta[index % 2]
    sequential = copy.deepcopy(network)
    for _ in range(2):
        ParallelForward(2)(network, make_views())
        for x in make_views():
            sequential(x)
    assert_equal(dict(network.named_buffers()), dict(sequential.named_buffers()), exact=False)


def test_a_batch_of_one_image_equals_the_sequential_pass() -> None:
    rng = torch.Generator().manual_seed(0)
    network = build_network(lambda: ResNet18((1, 8, 8), 2), "mlp", 4, rng)
    x = list(torch.rand(3, 1, 1, 8, 8, generator=torch.Generator().manual_seed(0)))
    sequential = copy.deepcopy(network)
    assert torch.equal(ParallelForward(2)(network, x), torch.cat([sequential(view) for view in x]))


def test_no_graph_is_built_under_no_grad() -> None:
    with torch.no_grad():
        assert not ParallelForward(2)(make_network(), make_views()).requires_grad


def test_a_copy_has_its_own_threads() -> None:
    parallel = ParallelForward(2)
    other = copy.deepcopy(parallel)
    assert other.threads == 2
    assert other.pool is not parallel.pool


def test_the_threads_end_with_the_object() -> None:
    before, parallel = set(threading.enumerate()), ParallelForward(2)
    parallel(make_network(), make_views())
    started = [thread for thread in threading.enumerate() if thread not in before]
    assert any(thread.name.startswith("sterad-pass") for thread in started)
    del parallel
    gc.collect()
    for thread in started:
        thread.join(timeout=10)
        assert not thread.is_alive()
