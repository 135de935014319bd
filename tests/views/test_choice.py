"""Tests of the per-sample choice."""

import pytest
import torch

from sterad.views.choice import choose, draw_chosen


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.8])
def test_samples_are_chosen_with_their_probability(probability: float) -> None:
    chosen = draw_chosen(20_000, probability, torch.Generator().manual_seed(0))
    assert chosen.dtype == torch.bool
    assert float(chosen.double().mean()) == pytest.approx(probability, abs=0.01)


def test_choose_is_exact() -> None:
    rng = torch.Generator().manual_seed(0)
    x, changed = torch.rand(2, 50, 3, 7, 7, generator=rng)
    chosen = draw_chosen(50, 0.5, rng)
    expected = torch.where(chosen[:, None, None, None], changed, x)
    assert torch.equal(choose(x, changed, chosen), expected)
