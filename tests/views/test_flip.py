"""Flips against kornia's."""

import kornia
import pytest
import torch

from sterad.views.flip import flip


@pytest.mark.parametrize("side", [8, 28, 32, 64])
def test_flip_is_kornias_for_the_chosen_and_nothing_for_the_rest(side: int) -> None:
    x = torch.rand(4, 3, side, side, generator=torch.Generator().manual_seed(0))
    flipped = flip(x, torch.tensor([True, False, True, False]))
    assert torch.equal(flipped[::2], kornia.geometry.transform.hflip(x[::2]))
    assert torch.equal(flipped[1::2], x[1::2])
