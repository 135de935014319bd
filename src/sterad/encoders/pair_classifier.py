"""The pair classifier of DVC: from the logits of two views of an image to joint logits."""

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from sterad.encoders.heads import Replaced, grow


class PairClassifier(nn.Module):
    """Linear(2 C → hidden), ReLU, Linear(hidden → C), for a growing number of classes C.

    The weight of the first layer is stored as `table`: (C, 2, hidden), indexed by class and view,
    so that it grows by rows, as the weight of the last layer does.
    """

    def __init__(self, classes: int, hidden: int = 128) -> None:
        """Initialize the weights as torch does for two linear layers."""
        super().__init__()
        first = nn.Linear(2 * classes, hidden)
        self.table = Parameter(
            first.weight.detach().view(hidden, 2, classes).permute(2, 1, 0).clone()
        )
        self.bias = Parameter(first.bias.detach().clone())
        self.last = nn.Linear(hidden, classes)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the joint logits (n, C) for the logits of the two views: (n, C) each."""
        hidden = first @ self.table[:, 0] + second @ self.table[:, 1] + self.bias
        logits: Tensor = self.last(torch.relu(hidden))
        return logits

    def widen(self, classes: int, rng: torch.Generator) -> Replaced:
        """Grow to `classes` and return the pairs of parameters for `carry_over`.

        The weights of new inputs are zero, so that the logits of old classes do not change.
        """
        replaced = grow(self.last, classes, rng)
        if replaced:
            old = self.table
            more = old.new_zeros(classes - len(old), *old.shape[1:])
            self.table = Parameter(torch.cat([old.detach(), more]), requires_grad=old.requires_grad)
            replaced.append((old, self.table))
        return replaced
