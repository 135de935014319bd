"""The asymmetric cross-entropy against its sum, class by class."""

import math

import pytest
import torch

from sterad.losses.asymmetric_cross_entropy import asymmetric_cross_entropy


def test_number_by_number() -> None:
    logits = torch.randn(4, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels, seen = [2, 7, 7, 2], [0, 2, 4, 7]
    allowed = {2, 7} | {1, 3, 5, 6, 8}  # of the batch, and never seen; 0 and 4 are the memory's
    losses = [
        math.log(sum(math.exp(row[c]) for c in allowed)) - row[label]
        for row, label in zip(logits.tolist(), labels, strict=True)
    ]
    ours = asymmetric_cross_entropy(logits, torch.tensor(labels), torch.tensor(seen))
    assert ours.item() == pytest.approx(sum(losses) / 4, rel=1e-12)


def test_classes_of_the_memory_have_no_gradient_and_all_others_have_one() -> None:
    logits = torch.zeros(3, 6, requires_grad=True)
    asymmetric_cross_entropy(logits, torch.tensor([1, 1, 5]), torch.tensor([0, 1, 2])).backward()
    assert logits.grad is not None
    assert (logits.grad != 0).all(dim=0).tolist() == [False, True, False, True, True, True]


def test_when_nothing_was_seen_before_it_is_the_plain_one() -> None:
    logits, labels = torch.randn(3, 5, generator=torch.Generator().manual_seed(1)), [4, 0, 1]
    plain = torch.nn.functional.cross_entropy(logits, torch.tensor(labels))
    ours = asymmetric_cross_entropy(logits, torch.tensor(labels), torch.tensor([0, 1, 4]))
    assert torch.equal(ours, plain)
