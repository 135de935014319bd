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


def test_is_torchs_for_eight_values_a_channel_and_more() -> None:
    ours, theirs = pair()
    for shape in ((2, 3, 2, 2), (8, 3, 1, 1), (5, 3, 4, 4)):
        x = torch.randn(shape)
        assert torch.equal(ours(x), theirs(x))
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value), name
    ours.eval(), theirs.eval()
    one = torch.randn(1, 3, 1, 1)
    assert torch.equal(ours(one), theirs(one))


def test_a_single_pixel_is_normalised_by_what_came_before() -> None:
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


def test_a_few_values_are_normalised_by_statistics_that_follow_them() -> None:
    ours, theirs = pair()
    x = torch.randn(2, 3, 1, 1)
    theirs(x)  # its statistics follow
    out = ours(x)
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value), name
    assert torch.equal(out, theirs.eval()(x))


def test_two_values_that_are_close_do_not_blow_gradients_up() -> None:
    ours, theirs = pair()
    for norm, limit in ((ours, 1.0), (theirs, 100.0)):
        x = torch.full((2, 3, 1, 1), 2.0)
        x[1] += 1e-4
        x.requires_grad_()
        (norm(x) * torch.tensor([1.0, -1.0]).view(2, 1, 1, 1)).sum().backward()
        assert x.grad is not None
        assert (x.grad.abs().max() < limit) == (norm is ours)


def test_statistics_may_move_before_the_way_back() -> None:
    ours, _ = pair()
    x = torch.randn(2, 3, 1, 1, requires_grad=True)
    first = ours(x)
    ours(torch.randn(9, 3, 1, 1))
    first.sum().backward()
    assert x.grad is not None
