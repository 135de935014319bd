"""Interference: which remembered samples a step on the stream would harm most.

The length of the gradient that a sample gives the classifier's weights is, for the cross-entropy of
raw logits z = W h, ‖softmax(z) - onehot(y)‖₁ ‖h‖₁. What a step adds to it is the interference.
"""

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sterad.encoders import Network


@torch.no_grad()
def most_interfered(network: Network, x: Tensor, y: Tensor, lr: float, n: int) -> Tensor:
    """Return the positions of n of the images on the device x, worst first, labels y: (len(x),).

    The step is the plain one against the gradients that the parameters have now, lr times each. It
    is taken on the way and not in place: neither weights nor gradients change. BatchNorm uses its
    running statistics, so that a sample is judged alone and the statistics stay too.
    """
    training = network.training
    network.eval()
    look = _Look(network)
    h, z = look(x)
    before = gradient_length(h, z, y)
    h, z = functional_call(look, _moved(look, lr), (x,))
    after = gradient_length(h, z, y)
    network.train(training)
    return (after - before).topk(n).indices


def gradient_length(h: Tensor, z: Tensor, y: Tensor) -> Tensor:
    """Return (n,) sums of absolute gradients of the classifier's weights, sample by sample.

    >>> h, z = torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2)
    >>> gradient_length(h, z, torch.tensor([1]))  # (0.5 + 0.5) (1 + 2)
    tensor([3.])
    """
    wrong = z.softmax(dim=1)
    wrong[torch.arange(len(y), device=y.device), y] -= 1
    return wrong.abs().sum(dim=1) * h.abs().sum(dim=1)


class _Look(nn.Module):
    """A network whose weights can be exchanged for one pass, in the precision that it has."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return h and p."""
        return self.network.both(x)


def _moved(module: nn.Module, lr: float) -> dict[str, Tensor]:
    return {
        name: parameter if parameter.grad is None else parameter - lr * parameter.grad
        for name, parameter in module.named_parameters()
    }
