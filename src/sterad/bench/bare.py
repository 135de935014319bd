"""The bare network: forward, backward and optimizer on a workload, and nothing else.

The least that a method can cost. Its passes go one after the other with all threads inside each, as
they are or compiled, or side by side with a thread each, whichever the machine does fastest.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Self

import torch
from torch import Tensor

from sterad.bench.workload import Pass, Workload
from sterad.encoders import Network
from sterad.encoders.network import COMPILE_AFTER
from sterad.methods.base.parts import OptimizerConfig, make_optimizer
from sterad.torch_private import add_each_


class Bare:
    """A network, an optimizer and images that have nothing to do but to be pushed."""

    def __init__(
        self, network: Network, config: OptimizerConfig, workload: Workload, images: Tensor
    ) -> None:
        """Copy the network; images: as many placed ones as the largest pass has."""
        self.network = deepcopy(network).train()
        self.weights = [one for one in self.network.parameters() if one.requires_grad]
        self.config, self.optimizer = config, make_optimizer(config, self.weights)
        self.workload, self.images = workload, images
        self.pool: ThreadPoolExecutor | None = None
        self.replicas: list[Network] = []

    def compiled(self) -> Self:
        """Return another one, whose network is compiled for each of its passes."""
        other = type(self)(self.network, self.config, self.workload, self.images)
        other.network.compile_encoder()
        expect(other.network, self.workload)
        return other

    def in_turn(self) -> None:
        """Push the passes one after the other."""
        for step in self.workload.steps:
            self.optimizer.zero_grad(set_to_none=True)
            for one in step:
                self._push(self.network, one)
            if any(one.learning for one in step):
                self.optimizer.step()

    def side_by_side(self, threads: int) -> None:
        """Push the passes of each step on threads, each through weights of its own."""
        if self.pool is None:
            self.pool = ThreadPoolExecutor(
                threads, initializer=torch.set_num_threads, initargs=(1,)
            )
            most = max(len(step) for step in self.workload.steps)
            self.replicas = [deepcopy(self.network) for _ in range(most)]
        for step in self.workload.steps:
            for replica in self.replicas:
                replica.zero_grad(set_to_none=True)
            list(self.pool.map(self._push, self.replicas, step))
            self._gather(replica for replica, one in zip(self.replicas, step, strict=False))
            if any(one.learning for one in step):
                self.optimizer.step()

    def _push(self, network: Network, one: Pass) -> None:
        with torch.set_grad_enabled(one.learning):
            out: Tensor = network(self.images[: one.images])
        if one.learning:
            out.backward(torch.ones_like(out))

    def _gather(self, replicas: Iterable[Network]) -> None:
        """Add the gradients of the replicas up."""
        total: list[Tensor] | None = None
        for replica in replicas:
            grads = [w.grad for w in replica.parameters() if w.grad is not None]
            if grads and total is None:
                total = grads
            elif grads and total is not None:
                add_each_(total, grads)
        for weight, grad in zip(self.weights, total or [], strict=False):
            weight.grad = grad


def expect(network: Network, workload: Workload) -> None:
    """Let a network that compiles what comes often know that these passes do."""
    network.sizes.update({one.images: COMPILE_AFTER for step in workload.steps for one in step})
