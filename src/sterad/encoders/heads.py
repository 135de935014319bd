"""Heads: from features to a projection or to logits; a head can grow during training."""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import Parameter, functional
from torch.optim import Optimizer

from sterad.errors import SteradError
from sterad.seeds import use_generator

KINDS = ("mlp", "linear", "cosine", "none")
HIDDEN_UNITS = 512
"""Hidden units of an mlp head by default."""
Replaced = list[tuple[Parameter, Parameter]]
"""Pairs of an old parameter and the new one, whose first rows are those of the old one."""


def make_head(kind: str, inputs: int, outputs: int, hidden: int = HIDDEN_UNITS) -> nn.Module:
    """Return a head from (n, inputs) to (n, outputs).

    mlp: two layers; linear: one layer; cosine: one layer with outputs in [-1, 1], which the method
    divides by its temperature; none: the features themselves.

    >>> make_head("mlp", 160, 10)
    Sequential(
      (0): Linear(in_features=160, out_features=512, bias=True)
      (1): ReLU()
      (2): Linear(in_features=512, out_features=10, bias=True)
    )
    """
    if kind not in KINDS:
        raise SteradError(f"unknown head {kind!r}: choose one of {', '.join(KINDS)}")
    if min(inputs, outputs, hidden) < 1:
        raise SteradError(
            f"a head from {inputs} inputs over {hidden} hidden units to {outputs} outputs is "
            "empty: every size must be positive"
        )
    if kind == "mlp":
        return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
    if kind == "linear":
        return nn.Linear(inputs, outputs)
    if kind == "cosine":
        return Cosine(inputs, outputs, bias=False)
    if outputs != inputs:
        raise SteradError(
            f"without a head the {inputs} features are the outputs, not {outputs}: "
            f"give {inputs} outputs, or choose a linear or mlp head"
        )
    return nn.Identity()


class Cosine(nn.Linear):
    """A linear layer whose outputs are the cosines between its input and the rows of its weight."""

    def forward(self, input: Tensor) -> Tensor:
        """Return (n, out_features) for input: (n, in_features); a zero input has cosine 0."""
        return functional.linear(functional.normalize(input), functional.normalize(self.weight))


def drawn_again(head: nn.Module) -> nn.Module:
    """Return a copy of a head, with new weights but for those that are not trained."""
    copied = deepcopy(head)
    for layer in copied.modules():
        if isinstance(layer, nn.Linear) and layer.weight.requires_grad:
            layer.reset_parameters()
    return copied


def frozen_layer(rows: Tensor) -> nn.Linear:
    """Return a linear layer without bias and gradient, with the weight rows: (outputs, inputs).

    >>> layer = frozen_layer(torch.eye(3, 2))
    >>> layer(torch.tensor([[5.0, 7.0]])), layer.weight.requires_grad
    (tensor([[5., 7., 0.]]), False)
    """
    # On meta, because the initialization would draw from torch's global generator.
    layer = nn.Linear(rows.shape[1], rows.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(rows.clone(), requires_grad=False)
    return layer


def last_layer(head: nn.Module) -> nn.Linear | None:
    """Return the last linear layer of a head, or None if the head has none."""
    layers = [module for module in head.modules() if isinstance(module, nn.Linear)]
    return layers[-1] if layers else None


def grow(head: nn.Module, outputs: int, rng: torch.Generator) -> Replaced:
    """Widen the last layer of a head, in place, to `outputs` rows.

    Old rows do not change; new rows are drawn from `rng` with the default initialization of torch.
    Pass the result to `carry_over`, or the optimizer continues to update the old parameters.
    """
    layer = last_layer(head)
    if layer is None:
        raise SteradError(
            f"cannot grow to {outputs} outputs without a head: choose a linear or mlp head"
        )
    if outputs < layer.out_features:
        raise SteradError(
            f"a head of {layer.out_features} outputs cannot shrink to {outputs}: "
            f"give at least {layer.out_features}"
        )
    if outputs == layer.out_features:
        return []
    # Drawn on the device of the generator, so that the rows are the same on every device.
    with use_generator(rng), torch.device(rng.device):
        more = outputs - layer.out_features
        extra = nn.Linear(layer.in_features, more, bias=layer.bias is not None)
    replaced = []
    for name, old in list(layer.named_parameters(recurse=False)):
        rows = extra.get_parameter(name).detach().to(old)
        new = Parameter(torch.cat([old.detach(), rows]), requires_grad=old.requires_grad)
        setattr(layer, name, new)
        replaced.append((old, new))
    layer.out_features = outputs
    return replaced


def carry_over(optimizer: Optimizer, replaced: Replaced) -> None:
    """Replace old parameters of an optimizer by new ones; others are not added to it.

    The state of old rows, such as momentum, is kept, and new rows get zeros: as if the layer had
    been that wide from the start and its new rows had not had a gradient yet.
    """
    new_of = {id(old): new for old, new in replaced}
    for group in optimizer.param_groups:
        group["params"] = [new_of.get(id(param), param) for param in group["params"]]
    for old, new in replaced:
        if old in optimizer.state:
            state = optimizer.state.pop(old)
            optimizer.state[new] = {key: _pad_rows(v, old, new) for key, v in state.items()}


@torch.no_grad()
def append_rows(old: nn.Module, new: nn.Module) -> None:
    """Append to the last layer of a head the rows that that of another one has in addition."""
    layer, wider = last_layer(old), last_layer(new)
    if layer is None or wider is None:
        return
    for name, rows in list(layer.named_parameters(recurse=False)):
        more = wider.get_parameter(name).detach()[len(rows) :]
        setattr(layer, name, Parameter(torch.cat([rows, more]), requires_grad=False))
    layer.out_features = wider.out_features


def _pad_rows(value: object, old: Tensor, new: Tensor) -> object:
    """Append rows of zeros to state in the shape of its parameter (momentum, not step counts)."""
    if not isinstance(value, Tensor) or value.shape != old.shape:
        return value
    return torch.cat([value, value.new_zeros(len(new) - len(old), *old.shape[1:])])
