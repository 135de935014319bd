"""Prototypes and their loss against slow loops."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.losses.prototypes import class_means, prototype_loss


def literal_loss(first: Tensor, second: Tensor, present: list[int], T: float) -> Tensor:
    rows = [(c, view[c]) for view in (first, second) for c in present]
    total = torch.zeros(())
    for i, (label, row) in enumerate(rows):
        others = [(c, o) for j, (c, o) in enumerate(rows) if j != i]
        (positive,) = [o for c, o in others if c == label]
        sums = torch.stack([(row @ o / T).exp() for _, o in others]).sum()
        total = total - ((row @ positive / T).exp() / sums).log()
    return total / len(rows)


def test_the_loss_of_present_classes_equals_the_literal_one() -> None:
    first, second = normalize(
        torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0)), dim=2
    )
    for present in ([0, 1, 2, 3, 4], [1, 4], [2]):
        mask = torch.tensor([c in present for c in range(5)])
        found = prototype_loss(first, second, mask, 0.5)
        assert torch.allclose(found, literal_loss(first, second, present, 0.5), atol=1e-6)
    nothing = prototype_loss(first, second, torch.zeros(5, dtype=torch.bool), 0.5)
    assert nothing.item() == 0


def test_means_of_classes_have_unit_length_or_are_zero() -> None:
    z = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    weights = torch.tensor([[1.0, 0, 0], [0.7, 0.3, 0], [0, 1, 0]]).repeat(2, 1)
    means = class_means(z, weights)
    assert torch.allclose(means[0], normalize((z[0] + z[3] + 0.7 * (z[1] + z[4])) / 3.4, dim=0))
    assert torch.allclose(means.norm(dim=1), torch.tensor([1.0, 1.0, 0.0]))
