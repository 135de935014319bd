"""Your own optimizer: any function from parameters to an optimizer, here with a scheduler."""

from collections.abc import Iterable

from torch import nn, optim

from sterad import OnlineClassifier
from sterad.data import Digits


def make_optimizer(
    parameters: Iterable[nn.Parameter],
) -> tuple[optim.Optimizer, optim.lr_scheduler.LRScheduler]:
    """Return AdamW and a schedule, which advances with every step; both are saved and resumed."""
    optimizer = optim.AdamW(parameters, lr=1e-2, weight_decay=0.01)
    return optimizer, optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.999)


digits = Digits(per_class=40).load()
classifier = OnlineClassifier("er", memory=100, optimizer=make_optimizer, encoder="mlp")
classifier.partial_fit(digits.train_images, digits.train_labels)
print(f"test accuracy {classifier.score(digits.test_images, digits.test_labels):.1%}")
