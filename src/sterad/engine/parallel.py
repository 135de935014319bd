"""ParallelForward: several forward passes through one network at the same time, on threads.

Each pass is normalized by its own batch, so the passes of n views are independent. Small
convolutions gain little from threads: two threads with a pass each take about two thirds of the
time of two sequential passes with two threads each. Gradients are added and running statistics are
updated in the order of the passes, so the bits do not depend on the scheduling of threads.
"""

import os
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any, Self

import torch
from torch import Tensor, nn

from sterad.encoders.network import Network
from sterad.encoders.own_encoder import BATCH_NORMS, constant_layers, uses_global_rng
from sterad.torch_private import add_each_, lerp_each_

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
RANDOM_LAYERS = (
    *(*DROPOUTS, nn.FeatureAlphaDropout, nn.RReLU, nn.RNNBase, nn.MultiheadAttention),
    nn.TransformerEncoderLayer,
)
"""Layers of torch that may draw random numbers in training."""


def _use_one_thread() -> None:
    """Keep a forked process from waiting for threads of OpenMP, which only its parent has."""
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)


class ParallelForward:
    """Threads, and replicas of a network that share its weights but not its running statistics."""

    def __init__(self, threads: int = 1) -> None:
        """Use so many threads; with 1, passes are sequential in the calling thread."""
        self.threads = threads
        self.weights: list[nn.Parameter] = []
        self.main: _Replica
        self.replicas: list[_Replica] = []
        self.independent_types: dict[frozenset[type[nn.Module]], bool] = {}
        """Whether passes of networks with these types of layers are independent."""
        self._pools: dict[int, ThreadPoolExecutor] = {}
        """The pool of each process, by its id: a forked process does not inherit threads."""

    @property
    def pool(self) -> ThreadPoolExecutor | None:
        """The threads of this process; None if passes are sequential."""
        if self.threads == 1:
            return None
        if (process := os.getpid()) not in self._pools:
            self._pools[process] = ThreadPoolExecutor(
                self.threads, "sterad-pass", initializer=torch.set_num_threads, initargs=(1,)
            )
            # End the threads with this object: a process may train many learners.
            weakref.finalize(self, self._pools[process].shutdown, wait=False)
        return self._pools[process]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a new object with as many threads; replicas are made again."""
        return type(self)(self.threads)

    def __call__(
        self, network: Network, inputs: Sequence[Tensor], unit: bool = False, stages: bool = False
    ) -> Tensor:
        """Return the outputs of all passes, concatenated: (sum of n, outputs)."""
        replicas, has_grad = self._replicas(network, len(inputs)), torch.is_grad_enabled()
        # A single image may be normalized by the running statistics, and the average of a layer
        # without momentum depends on the number of earlier passes: such passes are sequential.
        is_sequential = min(map(len, inputs)) == 1 or None in self.main.momenta
        if is_sequential or not self._is_independent(network, inputs[0]):
            return torch.cat([network(x, unit=unit, stages=stages) for x in inputs])

        def forward(replica: _Replica, x: Tensor) -> Tensor:
            with torch.set_grad_enabled(has_grad):  # each thread has its own setting
                out: Tensor = replica.network(x, unit=unit, stages=stages)
                return out

        if self._compiles(network) and network.training:
            network.sizes.update(map(len, inputs))
        outputs = self.map(forward, replicas, inputs)
        if network.training:
            self.main.update(replicas)
        weights = [weight for weight in self.weights if weight.requires_grad]
        out: Tensor = _Concatenate.apply(outputs, weights, self.map, *weights)  # type: ignore[no-untyped-call]
        return out

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return `function` of each argument, in their order, computed in parallel.

        A single argument is computed in the calling thread, where torch may use all threads.
        """
        if len(arguments[0]) == 1 or (pool := self.pool) is None:
            return list(map(function, *arguments))
        return list(pool.map(function, *arguments))

    def _is_independent(self, network: Network, x: Tensor) -> bool:
        """Return whether passes only change BatchNorm statistics, which `update` handles.

        Layers of this package and of torch are known; a user's are tested once, on a copy.
        """
        if self.main.independent is None:
            kinds = frozenset(map(type, network.modules()))
            if kinds not in self.independent_types:
                self.independent_types[kinds] = not self.main.has_other_buffers and (
                    all(map(_is_known, kinds)) or not uses_global_rng(network, x)
                )
            self.main.independent = self.independent_types[kinds]
        return self.main.independent

    def _compiles(self, network: Network) -> bool:
        """Return whether passes are compiled: parallel passes gain nothing by it (measured)."""
        return network.compiles and self.threads == 1

    def _replicas(self, network: Network, count: int) -> list["_Replica"]:
        """Return replicas in the network's mode."""
        weights = list(network.parameters())
        if [*map(id, weights)] != [*map(id, self.weights)]:  # another network, or a wider head
            self.weights, self.replicas, self.main = weights, [], _Replica(network)
        while len(self.replicas) < count:
            shared = {id(one): one for one in (*weights, *self.main.constants)}
            replica = deepcopy(network, shared)
            replica.counts = False
            if self._compiles(network):
                replica.compile_encoder()
            wrapped = _Replica(replica)
            for layer in wrapped.layers:
                layer.momentum = 1.0  # keep the statistics of the last pass only
            self.replicas.append(wrapped)
        for one in self.replicas[:count]:
            one.network.sizes = network.sizes
            if one.network.training != network.training:
                one.network.train(network.training)
        return self.replicas[:count]


class _Replica:
    """A network and its running statistics, collected once: collecting costs as much as a layer."""

    def __init__(self, network: Network) -> None:
        self.network = network
        constant = constant_layers(network)
        frozen = {id(one) for one in constant}
        layers = [one for one in network.modules() if isinstance(one, BATCH_NORMS)]
        self.layers = [one for one in layers if one.track_running_stats and id(one) not in frozen]
        self.constants = [one for layer in constant for one in layer.buffers(recurse=False)]
        """Buffers that no pass changes, which replicas share."""
        changed = [buffer for one in self.layers for buffer in one.buffers(recurse=False)]
        known = {*map(id, changed), *map(id, self.constants)}
        self.has_other_buffers = any(id(one) not in known for one in network.buffers())
        """Whether a pass may change buffers other than BatchNorm statistics."""
        self.independent: bool | None = None
        """Whether passes are independent; None if not tested yet."""
        buffers = [dict(one.named_buffers(recurse=False)) for one in self.layers]
        names = ("running_mean", "running_var")
        # `data` has a version counter of its own: an update would else spoil the graph of an
        # earlier single pass, which keeps the statistics although it normalizes by its batch.
        self.statistics = [one[name].data for one in buffers for name in names]
        self.momenta = [one.momentum for one in self.layers for _ in ("mean", "variance")]
        self.counts = [one["num_batches_tracked"] for one in buffers]

    def update(self, replicas: Sequence["_Replica"]) -> None:
        """Update the running averages with the statistics of each pass, in order."""
        for momentum in {one for one in self.momenta if one is not None}:
            at = [index for index, one in enumerate(self.momenta) if one == momentum]
            own, *others = ([one.statistics[i] for i in at] for one in (self, *replicas))
            for statistics in others:
                lerp_each_(own, statistics, momentum)
        if self.counts:
            add_each_(self.counts, len(replicas))


def _is_known(kind: type[nn.Module]) -> bool:
    """Return whether a layer draws no random numbers and has no state but BatchNorm's."""
    is_known = kind.__module__.startswith(("sterad.", "torch.nn."))
    return is_known and not issubclass(kind, RANDOM_LAYERS)


class _Concatenate(torch.autograd.Function):
    """Concatenates outputs with separate graphs; the backward pass runs them in parallel."""

    @staticmethod
    def forward(
        ctx: Any,
        outputs: list[Tensor],
        weights: list[Tensor],
        parallel_map: Callable[..., list[Any]],
        *_: Tensor,
    ) -> Tensor:
        ctx.outputs, ctx.weights, ctx.parallel_map = outputs, weights, parallel_map
        return torch.cat([out.detach() for out in outputs])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        def backward_one(out: Tensor, grad: Tensor) -> Sequence[Tensor | None]:
            gradients: Sequence[Tensor | None] = torch.autograd.grad(
                out, ctx.weights, grad, allow_unused=True
            )
            return gradients

        parts = grads[0].split([len(out) for out in ctx.outputs])
        # The last pass first, because part of it is still in cache: 1 % of a step.
        *others, first = ctx.parallel_map(backward_one, ctx.outputs[::-1], parts[::-1])
        used = [index for index, grad in enumerate(first) if grad is not None]
        total = [first[index] for index in used]
        for other in reversed(others):
            add_each_(total, [other[index] for index in used])
        summed = dict(zip(used, total, strict=True))
        return (None, None, None, *(summed.get(index) for index in range(len(first))))
