"""Private names of torch and their public fallbacks give the same numbers."""

import pytest
import torch
from torch import nn

from sterad import torch_private


def tensors(seed: int) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return [torch.rand(n, generator=rng) for n in (3, 5, 2)]


def results() -> list[torch.Tensor]:
    """Return the results of all functions."""
    moved, added, counted = tensors(0), tensors(1), [torch.zeros(1, dtype=torch.int64)]
    torch_private.lerp_each_(moved, tensors(2), 0.25)
    torch_private.add_each_(added, tensors(3))
    torch_private.add_each_(counted, 7)
    layer = nn.Linear(2, 2)
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    out = torch_private.uncompiled(layer)(torch.ones(1, 2))
    shape = torch.full((4,), 2.5, dtype=torch.float64)
    drawn = torch_private.standard_gamma(shape, torch.Generator().manual_seed(0))
    return [*moved, *added, *counted, out, drawn]


def test_fallbacks_give_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = results()
    for name in ("_foreach_lerp_", "_foreach_add_"):
        monkeypatch.delattr(torch, name)
    monkeypatch.delattr(nn.Module, "_call_impl", raising=False)
    monkeypatch.setattr(nn.Module, "__call__", lambda module, x: module.forward(x))
    found = results()
    assert all(torch.allclose(a, b) for a, b in zip(expected, found, strict=True))


def test_missing_checks_assume_the_slower_path(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not torch_private.is_transforming()
    monkeypatch.delattr(torch._C, "_are_functorch_transforms_active")
    assert torch_private.is_transforming()
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    assert not torch_private.has_bfloat16_units()


@pytest.mark.filterwarnings("ignore")  # warnings about internals of torch
@pytest.mark.usefixtures("_restore_torch")
def test_is_compiled() -> None:
    layer = nn.Linear(2, 2)
    assert not torch_private.is_compiled(layer)
    layer.compile()
    assert torch_private.is_compiled(layer)
