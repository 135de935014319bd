"""Images to features: encoders by name, heads that can grow, and the network of both."""

from sterad.encoders.encoder import ENCODERS, Encoder
from sterad.encoders.flatten import Flatten
from sterad.encoders.growth import carry_over, grow
from sterad.encoders.heads import make_head
from sterad.encoders.mlp import MLP
from sterad.encoders.network import MIN_CHANNELS_LAST_WIDTH, Network, build_network
from sterad.encoders.preact_resnet import PreactivationResNet18
from sterad.encoders.resnet import ResNet18

__all__ = [
    "ENCODERS",
    "MIN_CHANNELS_LAST_WIDTH",
    "MLP",
    "Encoder",
    "Flatten",
    "Network",
    "PreactivationResNet18",
    "ResNet18",
    "build_network",
    "carry_over",
    "grow",
    "make_head",
]
