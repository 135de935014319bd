"""Passes: several forward passes through one network, side by side on threads of their own.

Each pass is normalized by its own batch, so the passes of n views need not wait for each other, and
small convolutions thread badly inside: two threads with a pass each take about two thirds of the
time of one pass after the other with two threads inside. Gradients are added and running
statistics follow in the order of the passes, so that the bits do not depend on who was first.
"""

import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from sterad.encoders.network import Network
from sterad.torch_private import add_each_, lerp_each_

DRAWING = (_DropoutNd, nn.RReLU, nn.RNNBase, nn.MultiheadAttention, nn.TransformerEncoderLayer)
"""Layers of torch that may draw random numbers in training."""


class ParallelForward:
    """Threads, and replicas of a network that share its weights but not its running statistics."""

    def __init__(self, threads: int = 1) -> None:
        """Say how many passes may go side by side; 1 means one after the other, in this thread."""
        self.threads = threads
        self.weights: list[nn.Parameter] = []
        self.shared: _Normed
        self.replicas: list[_Normed] = []
        self.tried: dict[frozenset[type[nn.Module]], bool] = {}
        """Whether networks of these kinds of layers may go side by side."""
        self.pool: ThreadPoolExecutor | None = None
        if threads > 1:
            self.pool = ThreadPoolExecutor(
                threads, "sterad-pass", initializer=torch.set_num_threads, initargs=(1,)
            )
            # A process that trains many learners must not keep the threads of all of them.
            weakref.finalize(self, self.pool.shutdown, wait=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same number of fresh threads: they hold nothing that a copy would need."""
        return type(self)(self.threads)

    def __call__(self, network: Network, shown: Sequence[Tensor], unit: bool = False) -> Tensor:
        """Return the outputs of all passes, one below the other: (n · passes, outputs)."""
        replicas, learning = self._replicas(network, len(shown)), torch.is_grad_enabled()
        # A single image may be normalized by the running statistics, and a layer without momentum
        # follows by how many passes came before: those have to wait for each other.
        in_turn = min(map(len, shown)) == 1 or None in self.shared.momenta
        if in_turn or not self._independent(network, shown[0]):
            return torch.cat([network(x, unit=unit) for x in shown])

        def forward(replica: _Normed, x: Tensor) -> Tensor:
            with torch.set_grad_enabled(learning):  # each thread has a switch of its own
                out: Tensor = replica.network(x, unit=unit)
                return out

        if self._compiles(network) and network.training:
            network.sizes.update(map(len, shown))
        outputs = self.map(forward, replicas, shown)
        if network.training:
            self.shared.follow(replicas)
        weights = [weight for weight in self.weights if weight.requires_grad]
        joined: Tensor = _Join.apply(outputs, weights, self.map, *weights)  # type: ignore[no-untyped-call]
        return joined

    def map(self, act: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return what `act` makes of each argument, in their order, side by side on the threads.

        One that has nothing beside it stays here, where it has all threads inside.
        """
        if self.pool is None or len(arguments[0]) == 1:
            return list(map(act, *arguments))
        return list(self.pool.map(act, *arguments))

    def _independent(self, network: Network, x: Tensor) -> bool:
        """Return whether passes change nothing but statistics of BatchNorm, which `follow` carries.

        Layers of this package and of torch are known; a user's are tried out once, on a copy.
        """
        if self.shared.independent is None:
            kinds = frozenset(map(type, network.modules()))
            if kinds not in self.tried:
                self.tried[kinds] = not self.shared.has_other_buffers and (
                    all(map(_is_known, kinds)) or not _draws(network, x)
                )
            self.shared.independent = self.tried[kinds]
        return self.shared.independent

    def _compiles(self, network: Network) -> bool:
        """Return whether passes are compiled: side by side they gain nothing by it, measured."""
        return network.compiles and self.pool is None

    def _replicas(self, network: Network, count: int) -> list["_Normed"]:
        """Return replicas in the network's mode."""
        weights = list(network.parameters())
        if [*map(id, weights)] != [*map(id, self.weights)]:  # another network, or a grown head
            self.weights, self.replicas, self.shared = weights, [], _Normed(network)
        while len(self.replicas) < count:
            replica = deepcopy(network, {id(weight): weight for weight in weights})
            replica.counts = False
            if self._compiles(network):
                replica.compile_encoder()
            normed = _Normed(replica)
            for layer in normed.layers:
                layer.momentum = 1.0  # what stays is the statistic of the last pass alone
            self.replicas.append(normed)
        for one in self.replicas[:count]:
            one.network.sizes = network.sizes
            if one.network.training != network.training:
                one.network.train(network.training)
        return self.replicas[:count]


class _Normed:
    """A network and the running statistics in it: a walk to find them costs as much as a layer."""

    def __init__(self, network: Network) -> None:
        self.network = network
        layers = [one for one in network.modules() if isinstance(one, _BatchNorm)]
        self.layers = [one for one in layers if one.track_running_stats]
        known = {id(buffer) for one in self.layers for buffer in one.buffers(recurse=False)}
        self.has_other_buffers = any(id(one) not in known for one in network.buffers())
        """Whether a pass may change buffers in ways that are not known here."""
        self.independent: bool | None = None
        """Whether passes may go side by side; None before it was found out."""
        buffers = [dict(one.named_buffers(recurse=False)) for one in self.layers]
        self.statistics = [one[name] for one in buffers for name in ("running_mean", "running_var")]
        self.momenta = [one.momentum for one in self.layers for _ in ("mean", "variance")]
        self.counts = [one["num_batches_tracked"] for one in buffers]

    def follow(self, replicas: Sequence["_Normed"]) -> None:
        """Let the running statistics follow those of each pass in turn."""
        for momentum in {one for one in self.momenta if one is not None}:
            at = [index for index, one in enumerate(self.momenta) if one == momentum]
            mine, *passed = ([one.statistics[i] for i in at] for one in (self, *replicas))
            for statistics in passed:
                lerp_each_(mine, statistics, momentum)
        if self.counts:
            add_each_(self.counts, len(replicas))


def _is_known(kind: type[nn.Module]) -> bool:
    """Return whether a layer is known to draw no random numbers and to keep no state."""
    ours = kind.__module__.startswith(("sterad.", "torch.nn."))
    return ours and not issubclass(kind, DRAWING)


@torch.no_grad()
def _draws(network: Network, x: Tensor) -> bool:
    """Return whether a pass draws from torch's global generator.

    Side by side, passes would draw from it in an order that changes from run to run.
    """
    with torch.random.fork_rng(devices=[]):
        before = torch.get_rng_state()
        deepcopy(network)(x)
        return not torch.equal(before, torch.get_rng_state())


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
        # The last pass is walked first, as the caches still hold some of it: 1 % of a step.
        *others, first = ctx.walk(back, ctx.outputs[::-1], parts[::-1])
        used = [index for index, grad in enumerate(first) if grad is not None]
        total = [first[index] for index in used]
        for other in reversed(others):
            add_each_(total, [other[index] for index in used])
        summed = dict(zip(used, total, strict=True))
        return (None, None, None, *(summed.get(index) for index in range(len(first))))
