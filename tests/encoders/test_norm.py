import torch
from torch import nn

from sterad.encoders.norm import BatchNorm


def pair(channels: int = 3) -> tuple[BatchNorm, nn.BatchNorm2d]:
    """Return ours and torch's with the same statistics, which are not the initial ones."""
    ours, theirs = BatchNorm(channels), nn.BatchNorm2d(channels)
    x = 2 + 3 * torch.randn(6, channels, 4, 4)
    for norm in (ours, theirs):
        norm(x)
    return ours, theirs


def test_is_torchs_for_more_than_one_value_a_channel() -> None:
    ours, theirs = pair()
    for shape in ((1, 3, 1, 2), (2, 3, 1, 1), (5, 3, 4, 4)):
        x = torch.randn(shape)
        assert torch.equal(ours(x), theirs(x))
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value), name
    ours.eval(), theirs.eval()
    one = torch.randn(1, 3, 1, 1)
    assert torch.equal(ours(one), theirs(one))


def test_a_single_pixel_is_normalized_by_what_came_before() -> None:
    ours, theirs = pair()
    before = {name: value.clone() for name, value in ours.state_dict().items()}
    x = torch.randn(1, 3, 1, 1, requires_grad=True)
    out = ours(x)
    assert torch.equal(out, theirs.eval()(x))
    assert all(torch.equal(value, before[name]) for name, value in ours.state_dict().items())
    out.square().sum().backward()
    assert x.grad is not None
    assert bool((x.grad != 0).all())
    assert ours.weight.grad is not None
