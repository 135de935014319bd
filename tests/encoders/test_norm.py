import torch
from torch import nn

from sterad.encoders.resnet import BatchNorm


def pair(channels: int = 3) -> tuple[BatchNorm, nn.BatchNorm2d]:
    """Return our layer and that of torch after one batch."""
    found, expected = BatchNorm(channels), nn.BatchNorm2d(channels)
    x = 2 + 3 * torch.randn(6, channels, 4, 4)
    for norm in (found, expected):
        norm(x)
    return found, expected


def test_equals_torch_for_more_than_one_value_per_channel() -> None:
    found, expected = pair()
    for shape in ((1, 3, 1, 2), (2, 3, 1, 1), (5, 3, 4, 4)):
        x = torch.randn(shape)
        assert torch.equal(found(x), expected(x))
    for name, value in expected.state_dict().items():
        assert torch.equal(found.state_dict()[name], value), name
    found.eval(), expected.eval()
    x = torch.randn(1, 3, 1, 1)
    assert torch.equal(found(x), expected(x))


def test_single_pixel_is_normalized_by_the_running_statistics() -> None:
    found, expected = pair()
    before = {name: value.clone() for name, value in found.state_dict().items()}
    x = torch.randn(1, 3, 1, 1, requires_grad=True)
    out = found(x)
    assert torch.equal(out, expected.eval()(x))
    assert all(torch.equal(value, before[name]) for name, value in found.state_dict().items())
    out.square().sum().backward()
    assert x.grad is not None
    assert bool((x.grad != 0).all())
    assert found.weight.grad is not None
