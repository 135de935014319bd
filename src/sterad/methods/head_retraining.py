"""Head retraining: evaluation on the projection without Guillotine regularisation."""

from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.errors import SteradError
from sterad.methods.problem import Problem
from sterad.methods.replay import Replay, ReplayConfig

EPOCHS = 50
BATCH = 200


@dataclass(frozen=True)
class HeadRetrainingConfig(ReplayConfig):
    """The switch."""

    retrain_head: bool = False
    """With nearest-direction: retrain the head on the memory before each evaluation."""


class HeadRetraining(Replay):
    """A method that can answer by a copy of its head, trained anew for each evaluation."""

    Config = HeadRetrainingConfig
    config: HeadRetrainingConfig

    def __init__(self, config: HeadRetrainingConfig, problem: Problem) -> None:
        """Refuse the switch where nobody would ask the head."""
        if config.retrain_head and config.classifier != "nearest-direction":
            raise SteradError(
                f"retrain_head changes nothing for {config.classifier}, which throws the head "
                "away: use it with classifier=nearest-direction"
            )
        super().__init__(config, problem)
        self.retrained: nn.Module | None = None

    @abstractmethod
    def objective(self, z: Tensor, labels: Tensor) -> Tensor:
        """Return the summed loss of z: (n, d) unit rows."""

    def consolidate(self) -> None:
        """Fit the class means, or retrain a copy of the head, on everything in memory."""
        super().consolidate()
        if self.config.retrain_head:
            head, remembered = self.answering_network().head, self.remembered()
            self.retrained = retrain(head, remembered, self.objective, self.config.lr)

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of the retrained head, where there is one."""
        if (head := self.retrained) is None:
            return super().scores(x)
        decided = self.ask(x, lambda network, some: self.decide(head(network.features(some)).cpu()))
        return decided, self.seen


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
    copied = deepcopy(head).requires_grad_(True)  # a teacher's is frozen
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
