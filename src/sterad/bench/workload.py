"""The workload of a step: which images it passes through networks, and the bare network on them.

Hooks on encoders and optimizers record the workload, so that no method has to declare it.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from threading import Lock
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from sterad.encoders import Encoder, Network
from sterad.encoders.network import COMPILE_AFTER
from sterad.encoders.stages import StageExperts
from sterad.methods.base.optimizers import OptimizerConfig, make_optimizer
from sterad.torch_private import add_each_


@dataclass(frozen=True)
class Pass:
    """One forward pass of a batch."""

    images: int
    has_backward: bool
    stages: bool = False
    """Whether the outputs of all stages are computed."""
    shape: tuple[int, ...] | None = field(default=None, compare=False)
    """Shape of one image; None if it is unknown, as for passes with stages."""


@dataclass(frozen=True)
class Workload:
    """The passes before each optimizer step."""

    steps: tuple[tuple[Pass, ...], ...]

    @property
    def trained_images(self) -> int:
        """Images with a forward and a backward pass."""
        return sum(p.images for step in self.steps for p in step if p.has_backward)

    @property
    def forward_only_images(self) -> int:
        """Images with a forward pass only."""
        return sum(p.images for step in self.steps for p in step if not p.has_backward)


def record_workload(function: Callable[[], object]) -> Workload:
    """Call `function` once and return the passes of all encoders."""
    steps: list[list[Pass]] = [[]]
    lock = Lock()

    def record_pass(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        with lock:  # views may run in parallel
            if isinstance(module, Encoder):
                x, has_backward = inputs[0], torch.is_grad_enabled()
                steps[-1].append(Pass(len(x), has_backward, shape=tuple(x.shape[1:])))
            elif isinstance(module, StageExperts):  # behind an encoder that is not called itself
                steps[-1].append(Pass(len(inputs[0][0]), torch.is_grad_enabled(), stages=True))

    def record_step(*_: object) -> None:
        steps.append([])

    hooks = (
        register_module_forward_pre_hook(record_pass),
        register_optimizer_step_post_hook(record_step),
    )
    try:
        function()
    finally:
        for hook in hooks:
            hook.remove()
    return Workload(tuple(tuple(step) for step in steps if step))


class BareNetwork:
    """Forward, backward and optimizer on a workload and nothing else: the least a step can cost.

    The passes run one after the other with all threads in each, as they are or compiled, or in
    parallel with one thread each.
    """

    def __init__(
        self, network: Network, config: OptimizerConfig, workload: Workload, images: Tensor
    ) -> None:
        """Copy the network; images: a batch on the device, as large as the largest pass.

        Images of another size, such as reduced views, are made from these.
        """
        self.network = deepcopy(network).train()
        self.weights = [weight for weight in self.network.parameters() if weight.requires_grad]
        self.config, self.optimizer = config, make_optimizer(config, self.weights)
        self.workload, self.images = workload, images
        passes = [one_pass for step in workload.steps for one_pass in step]
        self.inputs = {(one.images, one.shape): _input_of(one, images) for one in passes}
        self.pool: ThreadPoolExecutor | None = None
        self.replicas: list[Network] = []

    def compiled(self) -> Self:
        """Return a copy whose network is compiled for each batch size of the workload."""
        other = type(self)(self.network, self.config, self.workload, self.images)
        other.network.compile_encoder()
        mark_sizes_for_compilation(other.network, self.workload)
        return other

    def run_sequentially(self) -> None:
        """Run the passes one after the other."""
        for step in self.workload.steps:
            self.optimizer.zero_grad(set_to_none=True)
            for one_pass in step:
                self._run_pass(self.network, one_pass)
            if any(one_pass.has_backward for one_pass in step):
                self.optimizer.step()

    def run_in_parallel(self, threads: int) -> None:
        """Run the passes of each step on threads, each with a replica of the network."""
        if self.pool is None:
            self.pool = ThreadPoolExecutor(
                threads, initializer=torch.set_num_threads, initargs=(1,)
            )
            most = max(len(step) for step in self.workload.steps)
            self.replicas = [deepcopy(self.network) for _ in range(most)]
        for step in self.workload.steps:
            for replica in self.replicas:
                replica.zero_grad(set_to_none=True)
            list(self.pool.map(self._run_pass, self.replicas, step))
            pairs = zip(self.replicas, step, strict=False)
            if trained := [replica for replica, one_pass in pairs if one_pass.has_backward]:
                total, *others = map(_gradients, trained)
                for gradients in others:
                    add_each_(total, gradients)
                for weight, gradient in zip(self.weights, total, strict=False):
                    weight.grad = gradient
                self.optimizer.step()

    def _run_pass(self, network: Network, one_pass: Pass) -> None:
        with torch.set_grad_enabled(one_pass.has_backward):
            x = self.inputs[one_pass.images, one_pass.shape]
            out: Tensor = network(x, stages=True) if one_pass.stages else network(x)
        if one_pass.has_backward:
            out.backward(torch.ones_like(out))


def _input_of(one_pass: Pass, images: Tensor) -> Tensor:
    """Return the images of a pass, in its size and in the memory format of `images`."""
    x, shape = images[: one_pass.images], one_pass.shape
    if shape is None or shape == tuple(x.shape[1:]):
        return x
    return interpolate(x, shape[1:])


def _gradients(network: Network) -> list[Tensor]:
    return [weight.grad for weight in network.parameters() if weight.grad is not None]


def mark_sizes_for_compilation(network: Network, workload: Workload) -> None:
    """Make a network compile the batch sizes of a workload at their next occurrence."""
    sizes = {one_pass.images for step in workload.steps for one_pass in step}
    network.sizes.update(dict.fromkeys(sizes, COMPILE_AFTER))
