"""The asymmetric cross-entropy against its definition in plain Python."""

import math

import pytest
import torch

from sterad.losses.asymmetric_cross_entropy import asymmetric_cross_entropy


def test_against_the_definition() -> None:
    logits = torch.randn(4, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels, seen = [2, 7, 7, 2], [0, 2, 4, 7]
    allowed = {2, 7} | {1, 3, 5, 6, 8}  # labels of the batch, and classes never seen; not 0 and 4
    losses = [
        math.log(sum(math.exp(row[c]) for c in allowed)) - row[label]
        for row, label in zip(logits.tolist(), labels, strict=True)
    ]
    loss = asymmetric_cross_entropy(logits, torch.tensor(labels), torch.tensor(seen))
    assert loss.item() == pytest.approx(sum(losses) / 4, rel=1e-12)


def test_seen_classes_outside_the_batch_get_no_gradient() -> None:
    logits = torch.zeros(3, 6, requires_grad=True)
    asymmetric_cross_entropy(logits, torch.tensor([1, 1, 5]), torch.tensor([0, 1, 2])).backward()
    assert logits.grad is not None
    assert (logits.grad != 0).all(dim=0).tolist() == [False, True, False, True, True, True]


def test_without_earlier_classes_it_equals_cross_entropy() -> None:
    logits, labels = torch.randn(3, 5, generator=torch.Generator().manual_seed(1)), [4, 0, 1]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(labels))
    loss = asymmetric_cross_entropy(logits, torch.tensor(labels), torch.tensor([0, 1, 4]))
    assert torch.equal(loss, expected)
