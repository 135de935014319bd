"""Passes: pixels and multiply-adds are counted where images go through a network."""

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import EncoderOptions, Network, make_encoder
from sterad.engine import Engine, Execution
from sterad.engine.passes import Passes, multiply_adds, pixels_of


def linear_network(shape: tuple[int, ...] = (1, 4, 4), outputs: int = 3) -> Network:
    encoder = make_encoder("flatten", shape, 2)
    return Network(encoder, nn.Linear(encoder.features, outputs))


def test_images_of_several_sizes_are_counted_apart() -> None:
    passes, network = Passes(), linear_network()
    passes.count(torch.zeros(5, 1, 4, 4), backward=True)
    passes.count(torch.zeros(2, 1, 2, 2), backward=True, times=3)
    passes.count(torch.zeros(7, 1, 4, 4), backward=False)
    assert passes.images == 5 + 6 + 7
    assert passes.pixels(network) == (5 * 16 + 6 * 4, 7 * 16)


def test_a_vector_is_one_pixel_and_a_resized_image_has_the_pixels_of_its_new_size() -> None:
    assert pixels_of(linear_network((9,)), (9,)) == 1
    encoder = make_encoder("resnet18", (3, 8, 8), 2, EncoderOptions(input_size=16))
    assert pixels_of(Network(encoder, nn.Identity()), (3, 8, 8)) == 256


def test_multiply_adds_equal_those_of_torch() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    encoder = make_encoder("resnet18", (3, 16, 16), 3)
    network = Network(encoder, nn.Linear(encoder.features, 5)).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(torch.zeros(1, 3, 16, 16))
    assert multiply_adds(network, (3, 16, 16)) == counter.get_total_flops() // 2


def test_multiply_adds_of_grouped_and_transposed_convolutions_by_hand() -> None:
    grouped = nn.Conv2d(4, 6, 3, padding=1, groups=2)  # 2 input channels for each output
    assert multiply_adds(grouped, (4, 5, 5)) == 6 * 5 * 5 * 2 * 9
    transposed = nn.ConvTranspose2d(4, 6, 2, stride=2)  # each input pixel is multiplied 6 · 4 times
    assert multiply_adds(transposed, (4, 5, 5)) == 4 * 5 * 5 * 6 * 4


def test_a_backward_pass_has_twice_the_multiply_adds_of_a_forward_pass() -> None:
    passes, network = Passes(), linear_network()
    once = multiply_adds(network, (1, 4, 4))
    assert once == 16 * 3
    passes.count(torch.zeros(5, 1, 4, 4), backward=True)
    passes.count(torch.zeros(7, 1, 4, 4), backward=False)
    assert passes.multiply_adds(network) == (3 * 5 + 7) * once


def test_measuring_changes_neither_the_network_nor_the_global_generator() -> None:
    encoder = make_encoder("resnet18", (3, 8, 8), 2)
    network = Network(encoder, nn.Linear(encoder.features, 2)).train()
    before, rng = {k: v.clone() for k, v in network.state_dict().items()}, torch.get_rng_state()
    multiply_adds(network, (3, 8, 8))
    assert network.training
    assert all(torch.equal(v, before[k]) for k, v in network.state_dict().items())
    assert torch.equal(torch.get_rng_state(), rng)
    assert not any(layer._forward_hooks for layer in network.modules())


def test_counts_continue_from_their_state() -> None:
    passes, other = Passes(), Passes()
    passes.count(torch.zeros(5, 1, 4, 4), backward=True)
    other.load_state_dict(passes.state_dict())
    other.count(torch.zeros(1, 1, 4, 4), backward=False)
    assert (other.trained, other.images) == (passes.trained, 6)


def test_a_state_without_counts_stays_incomplete() -> None:
    passes = Passes()
    passes.load_state_dict(None)
    passes.count(torch.zeros(5, 1, 4, 4), backward=True)
    assert not passes.is_complete
    assert passes.state_dict() is None


@pytest.mark.parametrize("pair", [[[1, 4, 4], -1], [[1, -4, 4], 5], [[1, 4.5], 5], [[1], "five"]])
def test_a_damaged_state_is_refused(pair: list[object]) -> None:
    with pytest.raises(ValueError, match="must be an integer from 0"):
        Passes().load_state_dict({"trained": [pair], "forward_only": []})


def test_joined_networks_count_once_for_each() -> None:
    encoder = make_encoder("flatten", (1, 4, 4), 2)

    class Pair(Network):
        members = 2

        def forward(self, x: Tensor, unit: bool = False, stages: bool = False) -> Tensor:
            return torch.cat([self.head(x.flatten(1)), self.head(x.flatten(1))], dim=1)

    network = Pair(encoder, nn.Linear(16, 3))
    engine = Engine(network, Execution(), lambda weights, _: torch.optim.SGD(weights, 0.1))
    engine.forward([torch.zeros(5, 1, 4, 4)])
    assert engine.images == 10
    assert engine.passes.pixels(network) == (2 * 5 * 16, 0)
    assert engine.passes.multiply_adds(network) == 3 * 5 * 2 * 16 * 3
