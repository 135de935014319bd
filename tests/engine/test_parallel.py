"""Passes side by side learn to the bit what passes one after the other learn."""

import copy
import gc
import threading
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from sterad.encoders import Network, build_network
from sterad.encoders.resnet import BatchNorm
from sterad.engine.parallel import ParallelForward

State = dict[str, Tensor]


def network(encoder: str = "resnet18", width: int = 2) -> Network:
    shape = (3, 16, 16) if encoder != "mlp" else (12,)
    return build_network(encoder, shape, width, "mlp", 8, torch.Generator().manual_seed(0))


def shown(count: int = 4, images: int = 5, encoder: str = "resnet18") -> list[Tensor]:
    shape = (3, 16, 16) if encoder != "mlp" else (12,)
    rng = torch.Generator().manual_seed(1)
    return list(torch.rand(count, images, *shape, generator=rng))


def learned(made: Network, outputs: Callable[[Network], Tensor]) -> tuple[Tensor, State, State]:
    """Return outputs, gradients and buffers of one walk there and back."""
    z = outputs(made)
    weight = torch.linspace(-1, 1, z.numel()).reshape(z.shape)
    (z * weight).sum().backward()
    grads = {k: w.grad for k, w in made.named_parameters() if w.grad is not None}
    return z.detach(), grads, dict(made.named_buffers())


def same(first: State, second: State, exact: bool = True) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        if exact:
            assert torch.equal(value, second[name]), name
        else:
            assert torch.allclose(value, second[name], rtol=1e-4, atol=1e-5), name


@pytest.mark.parametrize("encoder", ["resnet18", "preact-resnet18", "mlp"])
@pytest.mark.parametrize("unit", [True, False])
def test_threads_do_not_change_a_bit(encoder: str, unit: bool) -> None:
    made, x, inside = network(encoder), shown(encoder=encoder), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        passes = [ParallelForward(threads) for threads in (1, 2, 3, 7)]
        runs = [learned(copy.deepcopy(made), partial(one, inputs=x, unit=unit)) for one in passes]
    finally:
        torch.set_num_threads(inside)
    z, grads, buffers = runs[0]
    for other_z, other_grads, other_buffers in runs[1:]:
        assert torch.equal(z, other_z)
        same(grads, other_grads)
        same(buffers, other_buffers)


@pytest.mark.parametrize("encoder", ["resnet18", "mlp"])
def test_the_same_is_learned_as_without_replicas(encoder: str) -> None:
    made, x = network(encoder), shown(encoder=encoder)
    plain = learned(copy.deepcopy(made), lambda net: torch.cat([net(one, unit=True) for one in x]))
    ours = learned(copy.deepcopy(made), lambda net: ParallelForward(2)(net, x, unit=True))
    assert torch.allclose(plain[0], ours[0], atol=1e-6)
    same(plain[1], ours[1], exact=False)
    same(plain[2], ours[2], exact=False)


def test_many_steps_do_not_drift_from_their_network() -> None:
    made, passes = network(), ParallelForward(2)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    for _ in range(3):
        passes(made, shown(), unit=True).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    fresh = ParallelForward(1)(copy.deepcopy(made), shown(), unit=True)
    assert torch.equal(passes(made, shown(), unit=True), fresh)


def test_a_head_that_has_grown_is_noticed() -> None:
    made, passes = network(), ParallelForward(2)
    assert passes(made, shown()).shape == (20, 8)
    made.head = build_network("resnet18", (3, 16, 16), 2, "linear", 11, torch.Generator()).head
    z = passes(made, shown())
    z.sum().backward()
    assert z.shape == (20, 11)
    assert all(weight.grad is not None for weight in made.head.parameters())


@pytest.mark.parametrize("momenta", [(0.1, 0.3), (None, 0.1)])
def test_statistics_follow_layers_by_their_momenta(momenta: tuple[float | None, ...]) -> None:
    made = network()
    for index, layer in enumerate(one for one in made.modules() if isinstance(one, BatchNorm)):
        layer.momentum = momenta[index % 2]
    twin = copy.deepcopy(made)
    for _ in range(2):
        ParallelForward(2)(made, shown())
        for x in shown():
            twin(x)
    same(dict(made.named_buffers()), dict(twin.named_buffers()), exact=False)


def test_a_single_image_is_normalized_by_what_came_before() -> None:
    made = build_network("resnet18", (1, 8, 8), 2, "mlp", 4, torch.Generator().manual_seed(0))
    x = list(torch.rand(3, 1, 1, 8, 8, generator=torch.Generator().manual_seed(0)))
    twin = copy.deepcopy(made)
    assert torch.equal(ParallelForward(2)(made, x), torch.cat([twin(one) for one in x]))


def test_no_graph_where_none_is_wanted() -> None:
    with torch.no_grad():
        assert not ParallelForward(2)(network(), shown()).requires_grad


def test_a_copy_has_threads_of_its_own() -> None:
    passes = ParallelForward(2)
    other = copy.deepcopy(passes)
    assert other.threads == 2
    assert other.pool is not passes.pool


def test_the_threads_end_with_the_object() -> None:
    before, parallel = set(threading.enumerate()), ParallelForward(2)
    parallel(network(), shown())
    mine = [one for one in threading.enumerate() if one not in before]
    assert any(one.name.startswith("sterad-pass") for one in mine)
    del parallel
    gc.collect()
    for thread in mine:
        thread.join(timeout=10)
        assert not thread.is_alive()
