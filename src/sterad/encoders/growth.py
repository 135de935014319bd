"""Growth: more outputs for a head in the middle of training, at no cost to what it has learned."""

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import Optimizer

from sterad.encoders.heads import last_layer
from sterad.errors import SteradError
from sterad.seeds import use_generator

Replaced = list[tuple[Parameter, Parameter]]
"""Pairs of a parameter that was and the one in its place, whose first rows are the old ones."""


def grow(head: nn.Module, outputs: int, rng: torch.Generator) -> Replaced:
    """Widen the last layer of a head, in place, to `outputs` rows.

    Old rows keep their bits; new ones are initialized as torch does for a layer of that width, from
    `rng`. Give what is returned to `carry_over`, or the optimizer goes on with the old layer.
    """
    layer = last_layer(head)
    if layer is None:
        raise SteradError(
            f"without a head there is nothing to widen to {outputs} outputs: "
            "choose a linear or mlp head"
        )
    if outputs < layer.out_features:
        raise SteradError(
            f"a head of {layer.out_features} outputs cannot shrink to {outputs}: "
            "ask for as many or more"
        )
    if outputs == layer.out_features:
        return []
    return _widen(layer, outputs, rng)


def _widen(layer: nn.Linear, outputs: int, rng: torch.Generator) -> Replaced:
    with use_generator(rng):
        # Drawn where the generator lives, so that every device gets the same rows.
        extra = nn.Linear(
            layer.in_features,
            outputs - layer.out_features,
            bias=layer.bias is not None,
            device=rng.device,
        )
    replaced = []
    for name, old in list(layer.named_parameters(recurse=False)):
        rows = extra.get_parameter(name).detach().to(old)
        new = Parameter(torch.cat([old.detach(), rows]), requires_grad=old.requires_grad)
        setattr(layer, name, new)
        replaced.append((old, new))
    layer.out_features = outputs
    return replaced


def carry_over(optimizer: Optimizer, replaced: Replaced) -> None:
    """Let an optimizer go on with the new parameters where it had the old ones.

    Its momenta stay, with zeros for new rows: as if the layer had been that wide from the start and
    its new rows had not had a gradient yet. Parameters that it does not optimize stay out of it.
    """
    successors = {id(old): new for old, new in replaced}
    for group in optimizer.param_groups:
        group["params"] = [successors.get(id(param), param) for param in group["params"]]
    for old, new in replaced:
        if old in optimizer.state:
            state = optimizer.state.pop(old)
            optimizer.state[new] = {key: _padded(v, old, new) for key, v in state.items()}


def _padded(value: object, old: Tensor, new: Tensor) -> object:
    """Give state that is shaped like its parameter (momenta; not step counts) rows of zeros."""
    if not isinstance(value, Tensor) or value.shape != old.shape:
        return value
    return torch.cat([value, value.new_zeros(len(new) - len(old), *old.shape[1:])])
