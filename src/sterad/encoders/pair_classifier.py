"""The pair classifier: two views of an image to one set of logits, by way of the logits of each."""

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from sterad.encoders.growth import Replaced, grow


class PairClassifier(nn.Module):
    """Linear(2 C → hidden), ReLU, Linear(hidden → C), for classes that may become more.

    The first layer lies as `table`: (C, 2, hidden), what the logits of class c in the first and in
    the second view say to the hidden units; so its rows are classes too, and grow at the end.
    """

    def __init__(self, classes: int, hidden: int = 128) -> None:
        """Draw weights as torch does for layers of these sizes."""
        super().__init__()
        first = nn.Linear(2 * classes, hidden)
        self.table = Parameter(
            first.weight.detach().view(hidden, 2, classes).permute(2, 1, 0).clone()
        )
        self.bias = Parameter(first.bias.detach().clone())
        self.last = nn.Linear(hidden, classes)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return logits (n, C) of pairs whose views have the logits first, second: (n, C)."""
        hidden = first @ self.table[:, 0] + second @ self.table[:, 1] + self.bias
        logits: Tensor = self.last(torch.relu(hidden))
        return logits

    def widen(self, classes: int, rng: torch.Generator) -> Replaced:
        """Grow to `classes`; give what is returned to `carry_over`.

        New inputs start at zero, so that what is said of the old classes does not change.
        """
        replaced = grow(self.last, classes, rng)
        if replaced:
            old = self.table
            more = old.new_zeros(classes - len(old), *old.shape[1:])
            self.table = Parameter(torch.cat([old.detach(), more]), requires_grad=old.requires_grad)
            replaced.append((old, self.table))
        return replaced
