"""Networks: outputs, parameter counts and initialization."""

import pytest
import torch
from torch import nn

from sterad.encoders import MLP, Flatten, Network, ResNet18, build_network, grow, make_encoder
from sterad.errors import SteradError


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(head: str = "mlp", outputs: int | None = 6) -> Network:
    return build_network(lambda: ResNet18((1, 8, 8), 2), head, outputs, rng())


def small_mlp(generator: torch.Generator) -> Network:
    return build_network(lambda: MLP((5,), 2), "mlp", 4, generator)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("side", "outputs", "published"),
    [(32, 512, 11_745_444), (32, 128, 11_548_452), (64, 512, 12_531_876)],
    ids=["FD on CIFAR", "SCR on CIFAR", "FD on Tiny-ImageNet"],
)
def test_parameter_count_is_the_published_one(side: int, outputs: int, published: int) -> None:
    network = build_network(lambda: ResNet18((3, side, side), 64), "mlp", outputs, rng())
    # The released encoder also has a linear layer 512 → 100 that is never used.
    assert count(network) == published - (512 * 100 + 100)


def test_raw_and_unit_outputs() -> None:
    network = small().eval()
    x = torch.rand(4, 1, 8, 8)
    h, p = network.features_and_outputs(x)
    assert (h.shape, p.shape) == ((4, 16), (4, 6))
    assert torch.equal(network.features(x), h)
    assert torch.equal(network(x), p)
    assert torch.equal(p, network.head(network.encoder(x)))
    for raw, unit in ((h, network.features(x, unit=True)), (p, network(x, unit=True))):
        assert torch.allclose(unit.norm(dim=1), torch.ones(4))
        assert torch.allclose(unit * raw.norm(dim=1, keepdim=True), raw, atol=1e-6)


def test_unit_output_of_a_zero_row_has_a_finite_gradient() -> None:
    x = torch.zeros(1, 3, requires_grad=True)
    unit = Network(Flatten((3,), 1), nn.Identity())(x, unit=True)
    (gradient,) = torch.autograd.grad(unit.sum(), x)
    assert torch.equal(unit, torch.zeros(1, 3))
    assert bool(gradient.isfinite().all())


def test_number_of_outputs() -> None:
    assert small("mlp", 6).outputs == 6
    assert small("linear", 6).outputs == 6
    assert small("none", None).outputs == 16
    assert small("none", 16).outputs == 16
    assert small("mlp", None).outputs == 16
    network = small("linear", 6)
    grow(network.head, 9, rng())
    assert network.outputs == 9
    assert network(torch.rand(2, 1, 8, 8)).shape == (2, 9)


def test_one_pass_updates_the_batch_statistics_once() -> None:
    network = small()
    network.features_and_outputs(torch.rand(4, 1, 8, 8))
    counts = [v for name, v in network.named_buffers() if name.endswith("num_batches_tracked")]
    assert counts
    assert all(int(v) == 1 for v in counts)


def test_weights_depend_on_the_generator_only() -> None:
    state = torch.get_rng_state()
    generator = rng(3)
    first, second = (small_mlp(g) for g in (generator, rng(3)))
    other = small_mlp(generator)
    assert torch.equal(torch.get_rng_state(), state)
    for (name, a), b in zip(first.named_parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b), name
    a, b = next(first.parameters()), next(other.parameters())
    assert not torch.equal(a, b)


def test_weights_have_the_default_initialization_of_torch() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        encoder = MLP((5,), 2)
        head = nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 4))
    found = small_mlp(rng(3))
    expected = Network(encoder, head)
    for a, b in zip(found.parameters(), expected.parameters(), strict=True):
        assert torch.equal(a, b)


def test_network_is_on_the_default_device() -> None:
    with torch.device("meta"):
        network = small()
    assert all(parameter.is_meta for parameter in network.parameters())
    assert network(torch.empty(2, 1, 8, 8, device="meta")).shape == (2, 6)


def test_invalid_networks_raise() -> None:
    with pytest.raises(SteradError, match="did you mean 'resnet18'"):
        make_encoder("resnet81", (1, 8, 8), 2)
    with pytest.raises(SteradError, match="the 16 features are the outputs, not 6"):
        small("none", 6)
