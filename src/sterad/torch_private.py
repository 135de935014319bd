"""Private names of torch that training uses, each with a public fallback."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


def lerp_each_(targets: Sequence[Tensor], ends: Sequence[Tensor], weight: float) -> None:
    """Interpolate each target towards its end by `weight`, in place."""
    fused = getattr(torch, "_foreach_lerp_", None)
    if fused is not None:
        fused(targets, ends, weight)
        return
    for target, end in zip(targets, ends, strict=True):
        target.lerp_(end, weight)


def add_each_(targets: Sequence[Tensor], others: Sequence[Tensor] | int) -> None:
    """Add a tensor to each target, or one number to all targets, in place."""
    fused = getattr(torch, "_foreach_add_", None)
    if fused is not None:
        fused(targets, others)
        return
    for index, target in enumerate(targets):
        target.add_(others if isinstance(others, int) else others[index])


def is_compiled(module: nn.Module) -> bool:
    """Return whether `module.compile()` was called; copies of a module are not compiled."""
    return getattr(module, "_compiled_call_impl", None) is not None


def uncompiled(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return the uncompiled call of a module, with its hooks."""
    call: Callable[[Tensor], Tensor] = getattr(module, "_call_impl", module.forward)
    return call


def has_bfloat16_units() -> bool:
    """Return whether the CPU has instructions for products of bfloat16."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, bool)() for name in names)


def standard_gamma(shape: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw gamma variables of scale 1, differentiable with respect to `shape`."""
    private = getattr(torch, "_standard_gamma", None)
    if private is not None:
        drawn: Tensor = private(shape, generator=generator)
        return drawn
    with torch.random.fork_rng(devices=[]):
        if generator is not None:
            torch.default_generator.set_state(generator.get_state())
        drawn = torch.distributions.Gamma(shape, torch.ones_like(shape)).rsample()
        if generator is not None:
            generator.set_state(torch.default_generator.get_state())
    return drawn


def is_transforming() -> bool:
    """Return whether a transform of torch.func (vmap, grad) is active."""
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    return bool(active()) if active is not None else True
