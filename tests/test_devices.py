"""Copies to a device: only those from pinned memory to CUDA are asynchronous."""

from typing import Any

import pytest
import torch

from sterad.devices import to_device


@pytest.mark.parametrize(("device", "pinned"), [("cpu", False), ("mps", False), ("cuda:1", True)])
def test_only_copies_to_cuda_are_pinned_and_asynchronous(
    device: str, pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Any, bool]] = []

    def to(x: torch.Tensor, target: Any, *, non_blocking: bool, memory_format: Any) -> torch.Tensor:
        calls.append((target, non_blocking))
        return x

    def pin(x: torch.Tensor) -> torch.Tensor:
        calls.append(("pin", True))
        return x

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", to)
    to_device(torch.zeros(3), device)
    assert calls == ([("pin", True)] if pinned else []) + [(device, pinned)]
