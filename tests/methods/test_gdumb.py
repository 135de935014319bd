"""GDumb's own parts: its learning rates and its memory; the training is in test_from_scratch."""

from typing import Any

import pytest
import torch

from sterad.errors import SteradError
from sterad.memory import GreedyBalanced
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.gdumb import GDumb, GDumbConfig, restarting_cosine


def learner(**fields: Any) -> GDumb:
    made = build_learner(
        METHODS["gdumb"], GDumbConfig(**fields), Problem((1, 8, 8), 4, memory=10, width=2)
    )
    assert isinstance(made, GDumb)
    return made


def test_the_published_sequence_of_learning_rates() -> None:
    published = [0.005, 0.05, 0.05, 0.02525, 0.05, 0.04275, 0.02525, 0.00775]
    published += [0.05, 0.04812, 0.04275, 0.03472, 0.02525, 0.01578, 0.00775, 0.00238, 0.05]
    rates = [learner().rate(epoch) for epoch in range(30)]
    assert [round(rate, 5) for rate in rates[:17]] == published


def test_the_restarting_cosine_are_torchs() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.05)
    theirs = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 1, 2, eta_min=5e-4)
    for epoch in range(70):
        assert restarting_cosine(epoch, 0.05, 5e-4) == pytest.approx(
            optimizer.param_groups[0]["lr"]
        )
        optimizer.step()
        theirs.step()


def test_the_memory_is_balanced() -> None:
    made = learner()
    assert isinstance(made.memory, GreedyBalanced)
    assert made.memory.capacity == 10


def test_a_least_learning_rate_of_zero_is_refused() -> None:
    told = r"^min_lr 0\.0 is out of range: give a number in \(0, 1e\+06\]$"
    with pytest.raises(SteradError, match=told):
        learner(min_lr=0.0)
