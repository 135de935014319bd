"""Heads: features to a projection or to logits."""

from torch import nn

from sterad.errors import SteradError

KINDS = ("mlp", "linear", "none")


def make_head(kind: str, inputs: int, outputs: int, hidden: int = 512) -> nn.Module:
    """Return a head from (n, inputs) to (n, outputs): two layers, one, or the features as they are.

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
    if outputs != inputs:
        raise SteradError(
            f"without a head the {inputs} features are the outputs, not {outputs}: "
            f"ask for {inputs} outputs, or for a linear or mlp head"
        )
    return nn.Identity()


def last_layer(head: nn.Module) -> nn.Linear | None:
    """Return the layer that makes the head's outputs; a head without one passes features on."""
    layers = [module for module in head.modules() if isinstance(module, nn.Linear)]
    return layers[-1] if layers else None
