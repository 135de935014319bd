"""The network: an encoder and the head on it."""

import inspect
from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from sterad.encoders.encoder import ENCODERS, Encoder
from sterad.encoders.heads import last_layer, make_head
from sterad.errors import SteradError
from sterad.seeds import use_generator
from sterad.torch_private import is_compiled, uncompiled

MIN_CHANNELS_LAST_WIDTH = 16
"""Width below which channels stay first: the gradient of a 1 × 1 convolution with stride 2,
channels last, writes beyond its memory for fewer than 8 channels with AVX2 and fewer than 16 with
AVX-512, https://github.com/uxlfoundation/oneDNN/issues/6035 (torch 2.13)."""
COMPILE_AFTER = 32
"""Passes of one number of images after which the encoder is compiled for that number."""
RECOMPILE_LIMIT = 256
"""Numbers of images, widths and modes that one process compiles encoders for; torch stops at 8."""


class Network(nn.Module):
    """x → features h → projection p (or logits), raw or scaled to unit length."""

    precision: torch.dtype = torch.float32
    """What the encoder is computed in; features, and the small head on them, are float32."""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        """Put a head, see `make_head`, on an encoder."""
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.sizes = Counter[int]()
        """Passes in training by their number of images, counted where the encoder is compiled."""
        self.counts = True
        """Whether a pass counts itself; those side by side are counted before they begin."""

    @property
    def outputs(self) -> int:
        """Width of the head's output; it can grow."""
        layer = last_layer(self.head)
        return self.encoder.features if layer is None else layer.out_features

    def features(self, x: Tensor, unit: bool = False) -> Tensor:
        """Return h: (n, features), with rows of length 1 if `unit`."""
        h = self._encoded(x)
        return to_sphere(h) if unit else h

    def forward(self, x: Tensor, unit: bool = False) -> Tensor:
        """Return p: (n, outputs), with rows of length 1 if `unit`."""
        p: Tensor = self.head(self._encoded(x))
        return to_sphere(p) if unit else p

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return h and p, both raw, from one pass."""
        h = self.features(x)
        return h, self.head(h)

    def compile_encoder(self) -> None:
        """Let torch compile the encoder for each number of images that comes often, and that alone.

        A memory that fills has a new number at each step, and a stream ends with a short batch:
        those are not worth a minute each. What was counted says what is compiled, so whoever goes
        on from a state that has it goes on with the same bits.
        """
        known = inspect.signature(torch.compile).parameters
        # Beyond its limit torch goes on without compiling, and bits would hang on what came before.
        limit = {"recompile_limit": RECOMPILE_LIMIT} if "recompile_limit" in known else {}
        self.encoder.compile(dynamic=False, **limit)

    @property
    def convolves(self) -> bool:
        """Whether the encoder has a convolution."""
        return any(isinstance(layer, nn.Conv2d) for layer in self.encoder.modules())

    @property
    def compiles(self) -> bool:
        """Whether `compile_encoder` was called; a copy forgets it."""
        return is_compiled(self.encoder)

    def _encoded(self, x: Tensor) -> Tensor:
        encode = self._encoder(x)
        if self.precision is torch.float32:  # torch's own types, which a test may make double
            return encode(x)
        with torch.autocast(x.device.type, self.precision):
            h = encode(x)
        return h.float()

    def _encoder(self, x: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the encoder, compiled if such passes come often."""
        plain = uncompiled(self.encoder)
        if not (self.compiles and self.training):
            return plain
        if self.counts:
            self.sizes[len(x)] += 1
        return self.encoder if self.sizes[len(x)] >= COMPILE_AFTER else plain


def to_sphere(x: Tensor) -> Tensor:
    """Scale the rows of x: (n, d) to length 1; a row of zeros stays.

    >>> to_sphere(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return functional.normalize(x, dim=1, eps=1e-12)


def make_encoder(name: str, input_shape: tuple[int, ...], width: int) -> Encoder:
    """Return an encoder by name, or say what a user's own lacks."""
    make = ENCODERS[name]
    try:
        made = make(input_shape, width)
    except TypeError as error:
        raise SteradError(
            f"the encoder {name!r} cannot be made ({error}): it is called with the shape of one "
            "input and a width"
        ) from error
    features = getattr(made, "features", None)
    if not isinstance(made, nn.Module) or not isinstance(features, int) or features < 1:
        raise SteradError(
            f"the encoder {name!r} has features = {features!r}: make it a torch module that sets "
            "`features` to the size of its output"
        )
    return made


def build_network(
    encoder_name: str,
    input_shape: tuple[int, ...],
    width: int,
    head: str,
    outputs: int | None,
    rng: torch.Generator,
) -> Network:
    """Return a network, initialized as torch does by default, but from `rng` alone.

    `outputs` may be None for as many as there are features, the only choice without a head. Weights
    are drawn where the generator lives, then moved to torch's default device: all devices get the
    same ones.
    """
    with use_generator(rng), torch.device(rng.device):
        body = make_encoder(encoder_name, input_shape, width)
        top = make_head(head, body.features, body.features if outputs is None else outputs)
    return Network(body, top).to(torch.get_default_device())
