"""Passes: several forward passes through one network, side by side on threads of their own.

Each pass is normalised by its own batch, so the passes of n views need not wait for each other, and
small convolutions thread badly inside: two threads with a pass each take about two thirds of the
time of one pass after the other with two threads inside. Gradients are added and running
statistics follow in the order of the passes, so that the bits do not depend on who was first.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any, Self

import torch
from torch import Tensor, nn

from sterad.encoders.network import Network


class Passes:
    """Threads, and replicas of a network that share its weights but not its running statistics."""

    def __init__(self, threads: int = 1) -> None:
        """Say how many passes may go side by side; 1 means one after the other, in this thread."""
        self.threads = threads
        self.replicas: list[Network] = []
        self.pool: ThreadPoolExecutor | None = None
        if threads > 1:
            self.pool = ThreadPoolExecutor(
                threads, "sterad-pass", initializer=torch.set_num_threads, initargs=(1,)
            )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same number of fresh threads: they hold nothing that a copy would need."""
        return type(self)(self.threads)

    def __call__(self, network: Network, shown: Sequence[Tensor], unit: bool = False) -> Tensor:
        """Return the outputs of all passes, one below the other: (n · passes, outputs)."""
        if len(shown[0]) == 1:  # a single image may be normalised by the running statistics
            return torch.cat([network(x, unit=unit) for x in shown])
        replicas, learning = self._replicas(network, len(shown)), torch.is_grad_enabled()

        def forward(replica: Network, x: Tensor) -> Tensor:
            with torch.set_grad_enabled(learning):  # each thread has a switch of its own
                out: Tensor = replica(x, unit=unit)
                return out

        outputs = self.map(forward, replicas, shown)
        _follow(network, replicas)
        weights = [weight for weight in network.parameters() if weight.requires_grad]
        joined: Tensor = _Join.apply(outputs, weights, self.map, *weights)  # type: ignore[no-untyped-call]
        return joined

    def map(self, act: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return what `act` makes of each argument, in their order, side by side on the threads.

        One that has nothing beside it stays here, where it has all threads inside.
        """
        if self.pool is None or len(arguments[0]) == 1:
            return list(map(act, *arguments))
        return list(self.pool.map(act, *arguments))

    def _replicas(self, network: Network, count: int) -> list[Network]:
        """Return replicas in the network's mode whose running statistics are zero."""
        shared = {id(weight): weight for weight in network.parameters()}
        if self.replicas and {id(w) for w in self.replicas[0].parameters()} != set(shared):
            self.replicas = []  # another network, or a head that has grown
        while len(self.replicas) < count:
            self.replicas.append(deepcopy(network, dict(shared)))
            if network.encoder._compiled_call_impl is not None:  # a copy loses it
                self.replicas[-1].encoder.compile()
        for replica in self.replicas[:count]:
            replica.train(network.training)
            if statistics := _statistics(replica):
                torch._foreach_zero_(statistics)
        return self.replicas[:count]


class _Join(torch.autograd.Function):
    """Joins outputs that have graphs of their own; on the way back each graph is walked alone."""

    @staticmethod
    def forward(
        ctx: Any,
        outputs: list[Tensor],
        weights: list[Tensor],
        walk: Callable[..., list[Any]],
        *_: Tensor,
    ) -> Tensor:
        ctx.outputs, ctx.weights, ctx.walk = outputs, weights, walk
        return torch.cat([out.detach() for out in outputs])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        def back(out: Tensor, grad: Tensor) -> Sequence[Tensor | None]:
            walked: Sequence[Tensor | None] = torch.autograd.grad(
                out, ctx.weights, grad, allow_unused=True
            )
            return walked

        parts = grads[0].split([len(out) for out in ctx.outputs])
        first, *others = ctx.walk(back, ctx.outputs, parts)
        used = [index for index, grad in enumerate(first) if grad is not None]
        total = [first[index] for index in used]
        for other in others:
            torch._foreach_add_(total, [other[index] for index in used])
        summed = dict(zip(used, total, strict=True))
        return (None, None, None, *(summed.get(index) for index in range(len(first))))


def _follow(network: Network, replicas: Sequence[Network]) -> None:
    """Let the running statistics follow each pass in turn.

    A replica began at 0, so it holds momentum · statistic: what a pass adds to
    (1 - momentum) · running.
    """
    layers = _normed(network)
    if not layers or not network.training:
        return
    mine = _statistics(network)
    kept = [1 - (layer.momentum or 0.0) for layer in layers for _ in ("mean", "variance")]
    for replica in replicas:
        torch._foreach_mul_(mine, kept)
        torch._foreach_add_(mine, _statistics(replica))
    for layer in layers:
        if layer.num_batches_tracked is not None:
            layer.num_batches_tracked += len(replicas)


def _normed(network: Network) -> list[nn.BatchNorm2d]:
    return [one for one in network.modules() if isinstance(one, nn.BatchNorm2d)]


def _statistics(network: Network) -> list[Tensor]:
    pairs = ((one.running_mean, one.running_var) for one in _normed(network))
    return [value for pair in pairs for value in pair if value is not None]
