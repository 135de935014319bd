"""Evaluator: forward passes of a network without gradients, on its device and in its precision."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

import torch
from torch import Tensor, nn

from sterad.devices import to_device
from sterad.encoders import MIN_CHANNELS_LAST_WIDTH, Network
from sterad.engine.batchnorm_folding import WeightBuffers, folded
from sterad.engine.execution import Execution
from sterad.engine.parallel import ParallelForward

EVAL_BATCH_SIZE = 50
"""Images in one evaluation pass: with more, the feature maps exceed the processor's cache; with
fewer, the overhead of a layer exceeds its work."""
_MODE_LOCK = threading.Lock()


class Evaluator:
    """A network in evaluation mode, and how it is computed; `Engine` also trains it."""

    def __init__(self, network: Network, execution: Execution) -> None:
        """Bring a network to its device, memory format and precision."""
        self.execution = execution
        self.network = _prepare(network, execution)
        self.parallel = ParallelForward(execution.view_threads or 1)
        self._buffers: WeightBuffers = {}
        self._evaluations = 0
        """Evaluations in progress, in this thread or others; the last one restores the mode."""
        self._was_training = True

    @property
    def device(self) -> torch.device:
        """Where the network is computed."""
        return torch.device(self.execution.device)

    @cached_property
    def memory_format(self) -> torch.memory_format:
        """The memory format of images: channels_last where a convolution has it."""
        last = any(w.dim() == 4 and not w.is_contiguous() for w in self.network.parameters())
        return torch.channels_last if last else torch.contiguous_format

    def to_device(self, x: Tensor) -> Tensor:
        """Bring a tensor to the network's device, and images to its memory format."""
        format_ = self.memory_format if x.dim() == 4 else torch.preserve_format
        return to_device(x, self.device, format_)

    @contextmanager
    def evaluation(self, network: Network | None = None) -> Iterator[Network]:
        """Yield a network, by default the trained one, in evaluation mode with folded BatchNorm.

        It is folded again each time, which costs as much as one or two images, so that weights
        changed through `.data` cannot make a prediction stale.
        """
        network = network or self.network
        buffers, self._buffers = self._buffers, {}  # concurrent callers get their own
        with _MODE_LOCK:
            if self._evaluations == 0:
                self._was_training = self.network.training
            self._evaluations += 1
            network.eval()
        try:
            with torch.inference_mode():
                yield folded(network, buffers)
        finally:
            self._buffers = buffers
            with _MODE_LOCK:
                self._evaluations -= 1
                if self._evaluations == 0:
                    self.network.train(self._was_training)

    def in_chunks(self, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Return `function` of x: (n, ...), applied to chunks on the device, without graphs."""

        def apply(chunk: Tensor) -> Tensor:
            with torch.inference_mode():  # each thread has its own setting
                return function(self.to_device(chunk))

        return torch.cat(self.parallel.map(apply, x.split(EVAL_BATCH_SIZE)))

    def evaluate(
        self,
        function: Callable[[Network, Tensor], Tensor],
        x: Tensor,
        network: Network | None = None,
    ) -> Tensor:
        """Return `function(network, x)` for x: (n, ...), with the network in evaluation mode."""
        with self.evaluation(network) as folded_network:
            return self.in_chunks(lambda chunk: function(folded_network, chunk), x)


def _prepare(network: Network, execution: Execution) -> Network:
    network = network.to(execution.device)
    convolutions = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    narrowest = min((layer.out_channels for layer in convolutions), default=0)
    is_wide = narrowest >= MIN_CHANNELS_LAST_WIDTH
    if execution.memory_format == "channels_last" and is_wide:
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if any(True for _ in network.encoder.parameters()):  # raw pixels need no other precision
        network.precision = getattr(torch, execution.precision or "float32")
    # The compiler chooses channels_last by itself; without convolutions it saves nothing.
    if execution.compile and is_wide:
        network.compile_encoder()
    return network
