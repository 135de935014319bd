"""Copies between the host and a device."""

import torch
from torch import Tensor


def synchronize(device: str | torch.device) -> None:
    """Wait until a CUDA device has finished its work, for example before reading a clock."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def to_device(
    x: Tensor,
    device: str | torch.device,
    memory_format: torch.memory_format = torch.preserve_format,
) -> Tensor:
    """Return `x` on a device.

    Only copies from pinned memory to CUDA are asynchronous: with other devices, the host could read
    or overwrite data that is still being copied.
    """
    pinned = torch.device(device).type == "cuda" and x.device.type == "cpu"
    source = x.pin_memory() if pinned else x
    return source.to(device, non_blocking=pinned, memory_format=memory_format)


def to_double(x: Tensor) -> Tensor:
    """Return `x` in float64: on its device or, as MPS has no float64, on the CPU."""
    return (x.cpu() if x.device.type == "mps" else x).double()
