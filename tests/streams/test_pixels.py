import torch

from sterad.streams.pixels import to_bytes, to_unit


def test_every_byte_survives_the_way_there_and_back() -> None:
    pixels = torch.arange(256, dtype=torch.uint8)
    unit = to_unit(pixels)
    assert unit.dtype == torch.float32
    assert [unit.min().item(), unit.max().item()] == [0, 1]
    torch.testing.assert_close(to_bytes(unit), pixels, rtol=0, atol=0)
    assert pixels.tolist() == list(range(256))


def test_floats_pass_unchanged() -> None:
    vectors = torch.tensor([[300.0, -2.0]])
    assert to_unit(vectors) is vectors


def test_what_overshoots_is_clipped_not_wrapped() -> None:
    assert to_bytes(torch.tensor([-0.1, 1.1])).tolist() == [0, 255]
