import torch

from sterad.losses import ClassFrequencies, posterior_loss
from sterad.sphere import VonMisesFisher, kernel


def test_counts_grow_and_fade() -> None:
    start = ClassFrequencies.of(2, decay=0.5)
    after = start.seen(torch.tensor([0, 0, 1])).seen(torch.tensor([3]))
    assert after.counts.tolist() == [1, 0.5, 0, 1]
    assert after.classes().tolist() == [0, 1, 3]
    assert start.counts.tolist() == [0, 0]


def test_as_priors_of_the_posterior() -> None:
    frequencies = ClassFrequencies.of(3).seen(torch.tensor([0, 0, 0, 2]))
    classes = frequencies.classes()
    z = torch.tensor([[0.0, 1.0, 0.0]])  # at right angles to both: the priors alone decide
    loss = posterior_loss(
        z,
        torch.tensor([0]),
        kernel(VonMisesFisher, 5.0, 3),
        classes=classes,
        log_priors=frequencies.log_priors(classes),
    )
    assert torch.allclose(loss.exp(), torch.tensor(4 / 3))
