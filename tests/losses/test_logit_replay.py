"""Logit replay against its sum, entry by entry."""

import pytest
import torch

from sterad.losses.logit_replay import logit_replay_loss

DRAWS = torch.Generator().manual_seed(0)


def test_only_outputs_that_there_were_count() -> None:
    logits = torch.randn(4, 7, generator=DRAWS, dtype=torch.float64)
    stored = torch.randn(4, 5, generator=DRAWS, dtype=torch.float64)
    widths = [5, 2, 3, 5]
    gaps = [
        (logits[i, c] - stored[i, c]) ** 2 for i, width in enumerate(widths) for c in range(width)
    ]
    ours = logit_replay_loss(logits, stored, torch.tensor(widths))
    assert ours.item() == pytest.approx(float(sum(gaps)) / 15, rel=1e-12)


def test_at_full_width_it_is_the_mean_square_over_all_entries() -> None:
    logits, stored = torch.randn(2, 3, 4, generator=DRAWS)
    ours = logit_replay_loss(logits, stored, torch.full((3,), 4))
    assert ours.item() == pytest.approx(torch.nn.functional.mse_loss(logits, stored).item())
