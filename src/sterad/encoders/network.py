"""The network: an encoder and a head."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from sterad.encoders.encoder import Encoder
from sterad.encoders.heads import HIDDEN_UNITS, last_layer, make_head
from sterad.encoders.stages import StageExperts
from sterad.seeds import use_generator
from sterad.torch_private import is_compiled, uncompiled

MIN_CHANNELS_LAST_WIDTH = 16
"""Smallest width for the channels-last format. With fewer than 8 channels on AVX2, or 16 on
AVX-512, the gradient of a 1 × 1 convolution with stride 2 in that format writes out of bounds:
https://github.com/uxlfoundation/oneDNN/issues/6035 (torch 2.13)."""
COMPILE_AFTER = 32
"""Number of passes with the same batch size after which the encoder is compiled for it."""
RECOMPILE_LIMIT = 256
"""Number of variants (batch sizes, widths, modes) that a process compiles at most; 8 in torch."""


class Network(nn.Module):
    """x → features h → projection or logits p, raw or normalized to unit length."""

    precision: torch.dtype = torch.float32
    """dtype of the encoder, by autocast; the features and the head are float32."""
    members: int = 1
    """Networks that one pass computes: two if peers are joined into one network. A pass of an image
    counts once for each."""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        """Combine an encoder and a head (see `make_head`)."""
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.stage_experts: StageExperts | None = None
        """Experts of the encoder's stages, if their outputs are trained too."""
        self.stage_heads = nn.ModuleList()
        """A head for each stage but the last."""
        self.sizes = Counter[int]()
        """Number of training passes by batch size, counted if the encoder is compiled."""
        self.counts = True
        """Whether `forward` counts its passes; parallel passes are counted before they start."""

    @property
    def outputs(self) -> int:
        """Number of outputs of the head, which can grow."""
        layer = last_layer(self.head)
        return self.encoder.features if layer is None else layer.out_features

    def features(self, x: Tensor, unit: bool = False) -> Tensor:
        """Return h: (n, features), with rows of unit length if `unit`."""
        h = self._encode(x)
        return normalize(h) if unit else h

    def forward(self, x: Tensor, unit: bool = False, stages: bool = False) -> Tensor:
        """Return p: (n, outputs), with rows of unit length if `unit`; zero rows do not change.

        stages: append those of the earlier stages as columns: (n, outputs · stages).
        """
        if stages:
            return self._forward_stages(x, unit)
        p: Tensor = self.head(self._encode(x))
        return normalize(p) if unit else p

    def add_stages(self, experts: StageExperts, heads: Iterable[nn.Module]) -> None:
        """Add an expert and a head with as many outputs as this network to each earlier stage."""
        self.stage_experts, self.stage_heads = experts, nn.ModuleList(heads)

    def _forward_stages(self, x: Tensor, unit: bool) -> Tensor:
        *earlier, last = self._run(self._stage_features, x)
        heads = zip(self.stage_heads, earlier, strict=True)
        outputs = [self.head(last), *(head(h) for head, h in heads)]
        return torch.cat([normalize(p) if unit else p for p in outputs], dim=1)

    def _stage_features(self, x: Tensor) -> list[Tensor]:
        """Return the features of each stage, the last one's last."""
        assert self.stage_experts is not None
        features: list[Tensor] = self.stage_experts(self.encoder.stage_outputs(x))
        return features

    def features_and_outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return h and p, not normalized, from one pass."""
        h = self.features(x)
        return h, self.head(h)

    def compile_encoder(self) -> None:
        """Compile the encoder for each batch size that is used at least COMPILE_AFTER times.

        Batch sizes of a filling memory or of a last, short batch are used once, which is not worth
        a minute of compilation. `sizes` is part of the checkpoint, so that a resumed run compiles
        for the same batch sizes and gives the same bits.

        With experts of stages nothing is compiled: the compiled encoder returns features alone.
        """
        if self.stage_heads:
            return
        parameters = inspect.signature(torch.compile).parameters
        # Beyond its limit torch does not compile: results would depend on what was compiled before.
        limit = {"recompile_limit": RECOMPILE_LIMIT} if "recompile_limit" in parameters else {}
        self.encoder.compile(dynamic=False, **limit)

    @property
    def compiles(self) -> bool:
        """Whether `compile_encoder` was called; copies are not compiled."""
        return is_compiled(self.encoder)

    def _encode(self, x: Tensor) -> Tensor:
        encode = self._select_encoder(x)
        (h,) = self._run(lambda x: [encode(x)], x)
        return h

    def _run(self, function: Callable[[Tensor], list[Tensor]], x: Tensor) -> list[Tensor]:
        """Return the results of a function of x, computed in the network's precision."""
        if self.precision is torch.float32:  # without autocast, so that a float64 network works too
            return function(x)
        with torch.autocast(x.device.type, self.precision):
            results = function(x)
        return [one.float() for one in results]

    def _select_encoder(self, x: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the encoder, compiled if the batch size of x is frequent."""
        eager = uncompiled(self.encoder)
        if not (self.compiles and self.training):
            return eager
        if self.counts:
            self.sizes[len(x)] += 1
        return self.encoder if self.sizes[len(x)] >= COMPILE_AFTER else eager


def build_network(
    new_encoder: Callable[[], Encoder],
    head: str,
    outputs: int | None,
    rng: torch.Generator,
    hidden: int = HIDDEN_UNITS,
) -> Network:
    """Return a network whose weights are drawn from `rng` alone.

    outputs: None for the number of features, the only choice without a head. hidden: units of the
    hidden layer of an mlp head. Weights are drawn on the device of `rng` and moved to the default
    device, so that they are the same on every device.

    >>> from sterad.encoders import MLP
    >>> network = build_network(lambda: MLP((5,), 2), "linear", 3, torch.Generator().manual_seed(0))
    >>> network(torch.rand(4, 5)).shape
    torch.Size([4, 3])
    """
    with use_generator(rng), torch.device(rng.device):
        encoder = new_encoder()
        outputs = encoder.features if outputs is None else outputs
        projection = make_head(head, encoder.features, outputs, hidden)
    return Network(encoder, projection).to(torch.get_default_device())
