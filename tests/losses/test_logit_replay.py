"""Logit replay against its definition in plain Python."""

import pytest
import torch

from sterad.losses.logit_replay import logit_replay_loss

GENERATOR = torch.Generator().manual_seed(0)


def test_only_outputs_that_existed_are_compared() -> None:
    logits = torch.randn(4, 7, generator=GENERATOR, dtype=torch.float64)
    stored = torch.randn(4, 5, generator=GENERATOR, dtype=torch.float64)
    widths = [5, 2, 3, 5]
    squares = [
        (logits[i, c] - stored[i, c]) ** 2 for i, width in enumerate(widths) for c in range(width)
    ]
    loss = logit_replay_loss(logits, stored, torch.tensor(widths))
    assert loss.item() == pytest.approx(float(sum(squares)) / 15, rel=1e-12)


def test_at_full_width_it_equals_mse_loss() -> None:
    logits, stored = torch.randn(2, 3, 4, generator=GENERATOR)
    loss = logit_replay_loss(logits, stored, torch.full((3,), 4))
    assert loss.item() == pytest.approx(torch.nn.functional.mse_loss(logits, stored).item())
