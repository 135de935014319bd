"""Heads: features to a projection or to logits."""

from torch import Tensor, nn
from torch.nn import functional

from sterad.errors import SteradError

KINDS = ("mlp", "linear", "cosine", "none")


def make_head(kind: str, inputs: int, outputs: int, hidden: int = 512) -> nn.Module:
    """Return a head from (n, inputs) to (n, outputs): two layers, one, or the features as they are.

    The outputs of `cosine` are in [-1, 1]: a method divides them by its temperature.

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
            f"ask for {inputs} outputs, or for a linear or mlp head"
        )
    return nn.Identity()


class Cosine(nn.Linear):
    """A linear layer whose outputs are the cosines of its inputs with its rows."""

    def forward(self, input: Tensor) -> Tensor:
        """Return (n, out_features) for input: (n, in_features); zeros have cosine 0."""
        return functional.linear(functional.normalize(input), functional.normalize(self.weight))


def frozen_layer(rows: Tensor) -> nn.Linear:
    """Return a layer without bias that is never trained: x · row for rows: (outputs, inputs).

    >>> import torch
    >>> layer = frozen_layer(torch.eye(3, 2))
    >>> layer(torch.tensor([[5.0, 7.0]])), layer.weight.requires_grad
    (tensor([[5., 7., 0.]]), False)
    """
    # Laid out without memory first, as an initialization draws from torch's global generator.
    layer = nn.Linear(rows.shape[1], rows.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(rows.clone(), requires_grad=False)
    return layer


def last_layer(head: nn.Module) -> nn.Linear | None:
    """Return the layer that makes the head's outputs; a head without one passes features on."""
    layers = [module for module in head.modules() if isinstance(module, nn.Linear)]
    return layers[-1] if layers else None
