"""Folding: a network for evaluation, in which convolutions do the work of the BatchNorm after them.

In evaluation mode BatchNorm is s x + b for each channel, with s = γ / √(variance + ε) and
b = β - s · mean: a convolution with the weights s W and the bias b gives it at once.

Which normalization follows which convolution is not guessed: a class of modules says so of its own
layers in `folds`, pairs of their names, and promises that the output of the one goes to the other
and nowhere else. This does not hold for its subclasses, which may use the layers otherwise. Layers
that are not declared, or that have hooks, are not folded.
"""

from copy import copy
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from sterad.encoders.norm import BatchNorm

WeightBuffers = dict[str, Tensor]
"""Memory for folded weights, by the path of their layer."""

Module = TypeVar("Module", bound=nn.Module)


@torch.inference_mode()
def folded(network: Module, buffers: WeightBuffers | None = None) -> Module:
    """Return a network that computes what `network` in evaluation mode does, but for rounding.

    It shares with `network` all that is not folded, and does not follow the rest: fold again after
    a step. Weights are written into `buffers`, because allocating memory takes longer than filling
    it; a network that was folded into the same buffers before must not be used any more.
    """
    buffers = {} if buffers is None else buffers
    layers = dict(network.named_modules(remove_duplicate=False))
    new: dict[str, nn.Module] = {}
    nothing = nn.Identity()
    for path, module in layers.items():
        for pair in vars(type(module)).get("folds", ()):
            first, second = (f"{path}.{name}".removeprefix(".") for name in pair)
            joined = _joined(layers.get(first), layers.get(second), buffers, first)
            if joined is not None:
                new |= {first: joined, second: nothing}
    return _with(new, network)


def _joined(
    conv: nn.Module | None, norm: nn.Module | None, buffers: WeightBuffers, path: str
) -> nn.Conv2d | None:
    """Return one layer for two, or None if they are no plain pair in evaluation mode."""
    if type(conv) is not nn.Conv2d or not isinstance(norm, nn.BatchNorm2d):
        return None
    mean, variance = norm.running_mean, norm.running_var
    if type(norm) not in (nn.BatchNorm2d, BatchNorm) or _is_altered(conv) or _is_altered(norm):
        return None
    if norm.training or mean is None or variance is None:
        return None
    # These vectors are short, so double precision costs nothing and halves the error of outputs.
    scale = (variance.double() + norm.eps).rsqrt()
    scale = scale if norm.weight is None else scale * norm.weight
    shift = -mean if conv.bias is None else conv.bias - mean
    shift = scale * shift if norm.bias is None else scale * shift + norm.bias
    like, weight = conv.weight, buffers.get(path)
    if weight is None or weight.stride() != like.stride() or _kind(weight) != _kind(like):
        weight = buffers[path] = torch.empty_like(like)
    torch.mul(like, scale.to(like.dtype).view(-1, 1, 1, 1), out=weight)
    joined = copy(conv)
    parts = {"weight": weight, "bias": shift.to(like.dtype)}
    joined._parameters = {name: Parameter(t, requires_grad=False) for name, t in parts.items()}
    return joined


def _kind(tensor: Tensor) -> tuple[torch.Size, torch.dtype, torch.device]:
    return tensor.shape, tensor.dtype, tensor.device


def _is_altered(layer: nn.Module) -> bool:
    """Return whether a layer has hooks or a replaced forward."""
    return bool(layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer))


def _with(new: dict[str, nn.Module], module: Module, path: str = "") -> Module:
    """Return `module` with new layers at their paths; what contains none of them is not copied."""
    parts: dict[str, nn.Module | None] = {}
    for name, part in module._modules.items():
        at = f"{path}.{name}".removeprefix(".")
        parts[name] = new.get(at) if at in new or part is None else _with(new, part, at)
    if all(parts[name] is part for name, part in module._modules.items()):
        return module
    twin = copy(module)
    twin._modules = parts
    return twin
