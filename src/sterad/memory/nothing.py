"""Nothing: the memory of methods that keep none, so that none of them is a special case."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from sterad.streams import Batch


class Nothing:
    """Forgets what it is offered."""

    capacity = 0

    def __len__(self) -> int:
        return 0

    def update(self, batch: Batch) -> None:
        """Forget the batch."""

    def sample(self, n: int) -> Batch:
        """Return an empty batch."""
        return Batch(torch.empty(0), torch.empty(0, dtype=torch.int64))

    def everything(self, batch_size: int = 500) -> Iterator[Batch]:
        """Yield no batch."""
        return iter(())

    def class_counts(self, classes: int) -> Tensor:
        """Return zeros: (classes,) int64."""
        return torch.zeros(classes, dtype=torch.int64)

    def state_dict(self) -> dict[str, Any]:
        """Return an empty dictionary."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to load."""
