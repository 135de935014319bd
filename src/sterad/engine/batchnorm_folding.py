"""Folding: for evaluation, BatchNorm layers are merged into the convolutions before them.

In evaluation mode BatchNorm is s x + b for each channel, with s = γ / √(variance + ε) and
b = β - s · mean. A convolution with the weights s W and the bias b has the same output.

A class of modules declares the pairs of its layers by name in `folds`: the output of the first must
go to the second and nowhere else. Declarations are not inherited, because a subclass may use the
layers in another way. Layers that are not declared, or that have hooks, are not folded.
"""

from copy import copy
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from sterad.encoders.resnet import BatchNorm

WeightBuffers = dict[str, Tensor]
"""Memory for folded weights, by the path of their layer."""

Module = TypeVar("Module", bound=nn.Module)


@torch.inference_mode()
def folded(network: Module, buffers: WeightBuffers | None = None) -> Module:
    """Return a network with the outputs of `network` in evaluation mode, up to rounding.

    It shares all layers that are not folded with `network`; fold again after a step. Folded weights
    are written into `buffers`, because allocating memory takes longer than filling it; networks
    that were folded into the same buffers before must not be used any more.
    """
    buffers = {} if buffers is None else buffers
    layers = dict(network.named_modules(remove_duplicate=False))
    new: dict[str, nn.Module] = {}
    identity = nn.Identity()
    for path, module in layers.items():
        for pair in vars(type(module)).get("folds", ()):
            first, second = (f"{path}.{name}".removeprefix(".") for name in pair)
            joined = _fold(layers.get(first), layers.get(second), buffers, first)
            if joined is not None:
                new |= {first: joined, second: identity}
    return _replace_layers(new, network)


def _fold(
    conv: nn.Module | None, norm: nn.Module | None, buffers: WeightBuffers, path: str
) -> nn.Conv2d | None:
    """Return the folded convolution; None if the layers are no plain pair in evaluation mode."""
    if type(conv) is not nn.Conv2d or not isinstance(norm, nn.BatchNorm2d):
        return None
    mean, variance = norm.running_mean, norm.running_var
    if type(norm) not in (nn.BatchNorm2d, BatchNorm) or _is_altered(conv) or _is_altered(norm):
        return None
    if norm.training or mean is None or variance is None:
        return None
    # These vectors are short, so float64 costs nothing and halves the error of outputs.
    dtype = torch.float32 if variance.device.type == "mps" else torch.float64  # MPS has no float64
    scale = (variance.to(dtype) + norm.eps).rsqrt()
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


def _replace_layers(new: dict[str, nn.Module], module: Module, path: str = "") -> Module:
    """Return `module` with new layers at their paths; modules without any are not copied."""
    parts: dict[str, nn.Module | None] = {}
    for name, part in module._modules.items():
        at = f"{path}.{name}".removeprefix(".")
        parts[name] = new.get(at) if at in new or part is None else _replace_layers(new, part, at)
    if all(parts[name] is part for name, part in module._modules.items()):
        return module
    replaced = copy(module)
    replaced._modules = parts
    return replaced
