"""Engine: forward, backward and steps of one network, so that methods need no devices or dtypes."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from sterad.devices import to_device
from sterad.encoders import MIN_CHANNELS_LAST_WIDTH, Network, carry_over, grow
from sterad.engine.batchnorm_folding import WeightBuffers, folded
from sterad.engine.execution import Execution
from sterad.engine.parallel import ParallelForward
from sterad.errors import SteradError
from sterad.saved_state import check_count, check_like

EVAL_BATCH_SIZE = 50
"""Images in one evaluation pass: with more, the feature maps exceed the processor's cache; with
fewer, the overhead of a layer exceeds its work."""
MakeOptimizer = Callable[[list[nn.Parameter], bool], torch.optim.Optimizer]
"""Makes an optimizer of trainable weights; the flag says whether their gradients are scaled."""
MAX_GRADIENT_GROWTH = 100.0
"""A gradient that exceeds all earlier ones by this factor comes from an outlier in the data: one
of 1e5 among values around 1 gives 1e5 times their gradient, a new class about 10 times."""
MAX_FIRST_GRADIENT = 1e6
"""Largest norm of the first gradient."""
MIN_GRADIENT = 1e-6
"""Smaller norms are rounding errors, as those of a contrastive loss on a single class, and say
nothing about later gradients."""
_MODE_LOCK = threading.Lock()


class DivergenceError(SteradError):
    """A loss or gradient that would destroy the network; no step was taken with it."""


class GradientGuard:
    """Refuses a step whose gradient is infinite, or far larger than all before."""

    def __init__(self, largest: float = 0.0) -> None:
        """Continue with the largest norm so far."""
        self.largest = largest

    def check(self, weights: list[nn.Parameter]) -> None:
        """Raise DivergenceError before a step that would destroy the network."""
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(gradients))
        limit = MAX_GRADIENT_GROWTH * self.largest or MAX_FIRST_GRADIENT
        if not norm < limit:
            raise DivergenceError(
                f"the norm of the gradient is {norm:.3g}"
                + (f", and the largest one before was {self.largest:.3g}" if self.largest else "")
            )
        if norm >= MIN_GRADIENT:
            self.largest = max(self.largest, norm)


class Engine:
    """A network, its optimizer and everything that decides how both are computed."""

    def __init__(
        self, network: Network, execution: Execution, make_optimizer: MakeOptimizer
    ) -> None:
        """Bring a network to its device, memory format and precision."""
        self.execution = execution
        self.network = _prepare(network, execution)
        half = execution.precision == "float16"
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half)
        weights = [one for one in self.network.parameters() if one.requires_grad]
        if not weights:
            raise SteradError(
                "nothing can be trained: the encoder has no weights that require gradients and "
                "there is no head: use head=linear, for example"
            )
        self.make_optimizer = make_optimizer
        self.optimizer = make_optimizer(weights, half)
        self.parallel = ParallelForward(execution.view_threads or 1)
        self.images = 0
        """Images passed through the network in training, all views counted."""
        self.guard: GradientGuard | None = None
        """Refuses steps on gradients that are far too large; None: no step is refused."""
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

    def forward(self, views: Sequence[Tensor], unit: bool = False) -> Tensor:
        """Return the outputs of several batches, concatenated: (sum of n, outputs).

        Each batch is a separate pass with its own batch statistics. Passes run in parallel where
        that is faster; buffers are updated in the order of the batches.
        """
        self.images += sum(map(len, views))
        if len(views) == 1:
            out: Tensor = self.network(views[0], unit=unit)
            return out
        return self.parallel(self.network, views, unit)

    def backward(self, loss: Tensor) -> None:
        """Backpropagate the scaled loss; gradients accumulate."""
        if not (isinstance(loss, Tensor) and loss.ndim == 0 and loss.requires_grad):
            kind = f"of type {type(loss).__name__}"
            if isinstance(loss, Tensor):
                kind = f"of shape {tuple(loss.shape)}, requires_grad={loss.requires_grad}"
            raise SteradError(f"the loss is {kind}: return a scalar tensor with a gradient")
        self.scaler.scale(loss).backward()

    def gradients(self, loss: Tensor) -> list[Tensor]:
        """Return the gradients of the scaled loss; zeros for weights that do not affect it."""
        weights = self.trainable
        gradients = torch.autograd.grad(self.scaler.scale(loss), weights, allow_unused=True)
        return [
            torch.zeros_like(weight) if grad is None else grad
            for weight, grad in zip(weights, gradients, strict=True)
        ]

    @property
    def trainable(self) -> list[nn.Parameter]:
        """Weights that require gradients."""
        return [one for one in self.network.parameters() if one.requires_grad]

    def step(self, clip: float | None = None) -> None:
        """Clip the gradients to the norm `clip`, take an optimizer step and drop the gradients."""
        if self.guard is not None:
            self.guard.check(self.trainable)
        if clip is not None:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.drop_gradients()  # now, so that the next batch reuses their memory while it is cached

    def drop_gradients(self) -> None:
        """Set all gradients to None.

        `Optimizer.zero_grad` also calls profilers, which takes a tenth of a small network's step.
        """
        for group in self.optimizer.param_groups:
            for weight in group["params"]:
                weight.grad = None

    def widen(self, outputs: int, rng: torch.Generator) -> None:
        """Grow the head to `outputs`; existing rows and their optimizer state stay."""
        carry_over(self.optimizer, grow(self.network.head, outputs, rng))

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

    def state_dict(self) -> dict[str, Any]:
        """Return weights, buffers, optimizer, scaler and the counts that decide on compiling."""
        return {
            "images": self.images,
            "outputs": self.network.outputs,
            "network": self.network.state_dict(),
            "sizes": dict(self.network.sizes),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "largest_gradient": self.guard.largest if self.guard is not None else 0.0,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state whose head is as wide as this one's."""
        self.check_state(state)
        self.images = state["images"]
        self.network.load_state_dict(state["network"])
        self.network.sizes = Counter(state["sizes"])
        if self.guard is not None:
            self.guard.largest = state["largest_gradient"]
        # Copied, because torch shares the tensors of the loaded state with the optimizer.
        self.optimizer.load_state_dict(deepcopy(state["optimizer"]))
        if state["scaler"]:  # empty if the loss is not scaled
            self.scaler.load_state_dict(state["scaler"])

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless every tensor of a state fits this network and its optimizer."""
        check_count(state["images"], "images")
        check_like(state["network"], self.network.state_dict(), "network")
        for size, count in state["sizes"].items():
            check_count(size, "a batch size")
            check_count(count, "a number of batches")
        check_like(state["largest_gradient"], 0.0, "largest_gradient")
        if state["scaler"]:
            check_like(state["scaler"], self.scaler.state_dict(), "scaler")
        expected = self._stepped_optimizer().state_dict()
        saved = state["optimizer"]
        check_like(saved["param_groups"], expected["param_groups"], "optimizer")
        for index, values in saved["state"].items():  # none before the first step
            check_like(values, expected["state"][index], f"optimizer.{index}")

    def _stepped_optimizer(self) -> torch.optim.Optimizer:
        """Return an optimizer after a step on copies of the weights, which creates its state."""
        weights = [nn.Parameter(one.detach().clone()) for one in self.trainable]
        for weight in weights:
            weight.grad = torch.zeros_like(weight)
        optimizer = self.make_optimizer(weights, self.scaler.is_enabled())
        optimizer.step()
        return optimizer


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
