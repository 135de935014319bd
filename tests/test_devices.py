"""Copies to a device: only those from pinned memory to CUDA may go on while the host continues."""

from typing import Any

import pytest
import torch

from sterad.devices import to_device


@pytest.mark.parametrize(("device", "pinned"), [("cpu", False), ("mps", False), ("cuda:1", True)])
def test_only_pinned_memory_is_copied_unawaited(
    device: str, pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, bool]] = []

    def to(x: torch.Tensor, where: Any, *, non_blocking: bool, memory_format: Any) -> torch.Tensor:
        asked.append((where, non_blocking))
        return x

    def pin(x: torch.Tensor) -> torch.Tensor:
        asked.append(("pin", True))
        return x

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", to)
    to_device(torch.zeros(3), device)
    assert asked == ([("pin", True)] if pinned else []) + [(device, pinned)]
