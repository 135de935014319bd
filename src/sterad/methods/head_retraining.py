"""Head retraining: evaluation on the projection without Guillotine regularisation."""

from collections.abc import Callable
from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPOCHS = 50
BATCH = 200


def retrain(
    head: nn.Module,
    remembered: list[tuple[Tensor, Tensor]],
    objective: Callable[[Tensor, Tensor], Tensor],
    lr: float,
) -> nn.Module:
    """Return a copy of `head` trained on remembered raw features and labels, in storage order.

    The encoder is frozen and in evaluation mode, so its features are computed once and not anew in
    each of the epochs; `objective` takes unit rows and labels.
    """
    copied = deepcopy(head)
    optimiser = torch.optim.Adam(copied.parameters(), lr=lr)
    # Clones, because autograd refuses tensors that were made in inference mode.
    h = torch.cat([some for some, _ in remembered]).clone()
    y = torch.cat([labels for _, labels in remembered]).clone()
    for _ in range(EPOCHS):
        for some, labels in zip(h.split(BATCH), y.split(BATCH), strict=True):
            optimiser.zero_grad(set_to_none=True)
            objective(F.normalize(copied(some)), labels).backward()
            optimiser.step()
    return copied
