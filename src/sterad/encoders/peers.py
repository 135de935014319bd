"""Two networks of the same layers and other weights, side by side in one network."""

import torch
from torch import Tensor, nn

from sterad.encoders.encoder import Encoder
from sterad.encoders.heads import Replaced, grow
from sterad.encoders.network import Network


class PeerEncoders(Encoder):
    """Two encoders of the same inputs; features are those of the first, then of the second."""

    def __init__(self, first: Encoder, second: Encoder) -> None:
        """Join two encoders with equal numbers of features."""
        super().__init__()
        self.peers = nn.ModuleList([first, second])
        self.features = first.features + second.features
        self.lr = first.lr

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features of both) for inputs x."""
        # Not called as modules: hooks that count passes of encoders would count three.
        return torch.cat([one.forward(x) for one in self.peers], dim=1)


class PeerHeads(nn.Module):
    """Two heads, each on its half of the features; outputs are those of the first, then second."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        """Join two heads with equal numbers of inputs and of outputs."""
        super().__init__()
        self.peers = nn.ModuleList([first, second])

    def forward(self, h: Tensor) -> Tensor:
        """Return (n, outputs of both) for the features of both."""
        pairs = zip(self.peers, h.chunk(2, dim=1), strict=True)
        return torch.cat([head(half) for head, half in pairs], dim=1)

    def grow(self, outputs: int, rng: torch.Generator) -> Replaced:
        """Widen both heads to `outputs` rows; see `sterad.encoders.grow`."""
        return [pair for head in self.peers for pair in grow(head, outputs, rng)]


def join_peers(first: Network, second: Network) -> Network:
    """Return a network whose passes are those of both networks."""
    encoder = PeerEncoders(first.encoder, second.encoder)
    both = Network(encoder, PeerHeads(first.head, second.head))
    both.members = 2
    return both
