"""What is measured: steps over the bare network, stages of a step, evaluation, and scaling."""

import sys
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sterad.bench.setup import BenchSetup
from sterad.bench.timing import Rounds, Spread, Timings, time_interleaved
from sterad.bench.workload import BareNetwork, mark_sizes_for_compilation, record_workload
from sterad.engine.execution import Execution
from sterad.evaluation.evaluate import predict_all
from sterad.methods.base.replay import Replay
from sterad.methods.fixed_directions import FixedDirections
from sterad.streams import Batch
from sterad.streams.batch import to_unit
from sterad.threads import cores

SELECTION_ROUNDS = Rounds(count=4, seconds=2.0)
"""Rounds that select the fastest mode of the bare network; only that one is timed with the step."""
SMALL_BATCH = 10
"""Images per batch of the evaluation that we compare with."""
LINEAR_STEPS = 20
"""Steps of a linear layer that are timed as one call, a few milliseconds each."""


@dataclass(frozen=True)
class StepCost:
    """The time of one step of a method, and of the bare network on the same images."""

    method: str
    trained_images: int
    """Images with a forward and a backward pass."""
    forward_only_images: int
    seconds: Spread
    bare_seconds: Spread
    bare_mode: str
    """The fastest mode of the bare network: sequential, parallel or compiled."""
    ratio: Spread
    """Step over bare network, computed within each round."""
    overhead: Spread
    """Step minus bare network in seconds, computed within each round."""
    images_per_second: float
    peak_bytes: int | None
    """The largest resident size during the steps; None if unknown."""


def measure_step(setup: BenchSetup, method: str, execution: Execution, rounds: Rounds) -> StepCost:
    """Time a step of a method together with the bare network."""
    learner = setup.learner(method, execution)
    assert isinstance(learner, Replay)
    step = setup.step_function(learner)
    learner.network.sizes.clear()
    workload = record_workload(step)
    largest = max(one_pass.images for passes in workload.steps for one_pass in passes)
    images = learner.engine.to_device(setup.batch(largest).x)
    bare, threads = BareNetwork(learner.network, learner.config, workload, images), cores()
    modes: dict[str, Callable[[], object]] = {"sequential": bare.run_sequentially}
    if threads > 1 and max(map(len, workload.steps)) > 1:
        modes["parallel"] = lambda: bare.run_in_parallel(threads)
    if learner.network.sizes:  # single passes, which the learner compiles
        mark_sizes_for_compilation(learner.network, workload)
        modes["compiled"] = bare.compiled().run_sequentially
    mode = "sequential"
    if len(modes) > 1:
        mode = time_interleaved(modes, SELECTION_ROUNDS).fastest(*modes)
    _reset_peak_memory()
    timings = time_interleaved({"step": step, mode: modes[mode]}, rounds)
    total_images = workload.trained_images + workload.forward_only_images
    return StepCost(
        method=method,
        trained_images=workload.trained_images,
        forward_only_images=workload.forward_only_images,
        seconds=timings.of("step"),
        bare_seconds=timings.of(mode),
        bare_mode=mode,
        ratio=timings.ratio("step", mode),
        overhead=timings.difference("step", mode),
        images_per_second=total_images / timings.of("step").median,
        peak_bytes=_peak_memory_bytes(),
    )


def _reset_peak_memory() -> None:
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory_bytes() -> int | None:
    """Return the largest resident size since `_reset_peak_memory`; None if not on Linux."""
    if sys.platform != "linux":
        return None
    lines = Path("/proc/self/status").read_text().splitlines()
    found = [line for line in lines if line.startswith("VmHWM:")]
    return int(found[0].split()[1]) * 1024 if found else None


def measure_stages(setup: BenchSetup, method: str, execution: Execution, rounds: Rounds) -> Timings:
    """Time a step of a fixed-directions method and each of its stages.

    A memory larger than any of the paper's is timed as well.
    """
    learner = setup.learner(method, execution)
    assert isinstance(learner, FixedDirections)
    batch = setup.batch(seed=1)
    joined = Batch.concatenate(learner.memory.sample(learner.config.memory_batch), batch)
    images = learner.engine.to_device(joined.x)
    large_setup = BenchSetup(image_size=64, memory=10_000, encoder="flatten")
    large_learner = large_setup.learner_after(100_000, execution)
    large_batch = large_setup.batch(seed=1)

    def use_memory(of: Replay, batch: Batch) -> None:
        of.retrieve(batch)
        of.remember(batch)

    functions: dict[str, Callable[[], object]] = {
        "step": setup.step_function(learner),
        "views": lambda: learner.views_of(images),
        "memory": lambda: use_memory(learner, batch),
        "memory of 10,000 images of 64 pixels": lambda: use_memory(large_learner, large_batch),
        "checks": lambda: learner.admit(batch),
    }
    timer = StageTimer(learner)
    timings = time_interleaved(functions, rounds)
    last = slice(-len(timings.seconds["step"]), None)  # without the warm-up round
    inner = {"loss": timer.loss[last], "optimizer": timer.optimizer[last]}
    return Timings({**timings.seconds, **inner})


class StageTimer:
    """Measures the seconds of the loss (forward and backward) and of the optimizer in each step.

    Hooks measure them within a step, because outside of it they would need a backward pass of their
    own and find other data in the caches.
    """

    def __init__(self, learner: FixedDirections) -> None:
        """Wrap the objective of a learner and hook its optimizer."""
        self.objective: Callable[..., Tensor] = learner.loss_of
        self.loss: list[float] = []
        self.optimizer: list[float] = []
        self.start = self.forward_seconds = 0.0
        learner.engine.optimizer.register_step_pre_hook(self._start_clock)
        learner.engine.optimizer.register_step_post_hook(self._record_optimizer)
        setattr(learner, "loss_of", self._timed_objective)  # noqa: B010 - mypy: a method

    def _timed_objective(self, z: Tensor, *rest: Any) -> Tensor:
        before = time.perf_counter()
        loss = self.objective(z, *rest)
        self.forward_seconds = time.perf_counter() - before
        loss.register_hook(self._start_clock)
        z.register_hook(self._record_loss)
        return loss

    def _start_clock(self, *_: object) -> None:
        self.start = time.perf_counter()

    def _record_loss(self, _: Tensor) -> None:
        self.loss.append(self.forward_seconds + time.perf_counter() - self.start)

    def _record_optimizer(self, *_: object) -> None:
        self.optimizer.append(time.perf_counter() - self.start)


def measure_evaluation(
    setup: BenchSetup, execution: Execution, images: int, rounds: Rounds
) -> Timings:
    """Time predictions: by `predict_all`, and by the plain network in small batches."""
    learner = setup.learner("er", execution)
    assert isinstance(learner, Replay)
    pixels = (setup.batch(images).x * 255).byte().numpy()
    network = deepcopy(learner.network).eval()
    network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]

    @torch.no_grad()
    def predict_in_small_batches() -> None:
        inputs = to_unit(torch.from_numpy(pixels)).to(learner.engine.device)
        for batch in inputs.split(SMALL_BATCH):
            network(batch).argmax(1).cpu()

    functions: dict[str, Callable[[], object]] = {
        "sterad": lambda: predict_all(learner, pixels, np.arange(images)),
        "small batches": predict_in_small_batches,
    }
    return time_interleaved(functions, rounds)


@dataclass(frozen=True)
class Scaling:
    """The time of a step at a large size over that at a small size."""

    quantity: str
    small: int
    large: int
    ratio: Spread


def measure_scaling(setup: BenchSetup, execution: Execution, rounds: Rounds) -> Iterator[Scaling]:
    """Yield how a step of ER scales with the stream, the memory, the classes and the image size.

    Except for the image size, the network is a linear layer, which hides nothing.
    """
    linear, execution = replace(setup, encoder="flatten"), replace(execution, compile=False)

    def after_steps(steps: int) -> Replay:
        return linear.learner_after(steps * linear.batch_size, execution)

    def with_memory(memory: int) -> Replay:
        return replace(linear, memory=memory).learner_after(10 * memory, execution)

    def with_classes(classes: int) -> Replay:
        return replace(linear, classes=classes).learner_after(0, execution)

    def with_image_size(image_size: int) -> Replay:
        return replace(setup, image_size=image_size).learner_after(0, execution)

    for quantity, small, large, make_learner in (
        ("steps of the stream", 1_000, 100_000, after_steps),
        ("images in memory", 1_000, 100_000, with_memory),
        ("classes", 10, 1_000, with_classes),
        ("image size in pixels", 16, 32, with_image_size),
        ("image size in pixels", 16, 64, with_image_size),
    ):
        functions = {str(size): _steps_function(make_learner(size)) for size in (small, large)}
        ratio = time_interleaved(functions, rounds).ratio(str(large), str(small))
        yield Scaling(quantity, small, large, ratio)


def _steps_function(learner: Replay) -> Callable[[], None]:
    shape, classes = learner.problem.input_shape, learner.problem.classes or 1
    batch = BenchSetup(shape[-1], shape[0], classes).batch(seed=1)
    steps = LINEAR_STEPS if learner.problem.encoder == "flatten" else 1

    def take_steps() -> None:
        for _ in range(steps):
            learner.observe(batch)

    return take_steps
