"""Placing: from the host to a device without waiting for it."""

import torch
from torch import Tensor

AS_IT_IS = torch.preserve_format


def placed(
    x: Tensor, device: str | torch.device, memory_format: torch.memory_format = AS_IT_IS
) -> Tensor:
    """Return `x` on a device; a graphics card fetches it from pinned memory while others work."""
    if torch.device(device).type == "cuda" and x.device.type == "cpu":
        x = x.pin_memory()
    return x.to(device, non_blocking=True, memory_format=memory_format)
