"""Stage 5: encoders from images to features, heads that can grow, and networks of both."""

from sterad.encoders.encoder import ENCODERS, Encoder
from sterad.encoders.heads import carry_over, grow, make_head
from sterad.encoders.make import count_weights, is_file_function, make_encoder, resolve_encoder
from sterad.encoders.mlp import MLP, Flatten
from sterad.encoders.network import MIN_CHANNELS_LAST_WIDTH, Network, build_network
from sterad.encoders.options import EncoderOptions
from sterad.encoders.resnet import PreactivationResNet18, ResNet18

__all__ = [
    "ENCODERS",
    "MIN_CHANNELS_LAST_WIDTH",
    "MLP",
    "Encoder",
    "EncoderOptions",
    "Flatten",
    "Network",
    "PreactivationResNet18",
    "ResNet18",
    "build_network",
    "carry_over",
    "count_weights",
    "grow",
    "is_file_function",
    "make_encoder",
    "make_head",
    "resolve_encoder",
]
