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


def measure_step(
    setup: BenchSetup, method: str, execution: Execution, rounds: Rounds, **fields: Any
) -> StepCost:
    """Time a step of a method with these fields together with the bare network."""
    learner = setup.learner(method, execution, **fields)
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
        trial = time_interleaved(modes, SELECTION_ROUNDS)
        mode = min(modes, key=lambda name: trial.of(name).median)
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
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


def _peak_memory_bytes() -> int | None:
    """Return the largest resident size since the last reset; None if not on Linux."""
    if sys.platform != "linux":
        return None
    lines = Path("/proc/self/status").read_text().splitlines()
    found = [line for line in lines if line.startswith("VmHWM:")]
    return int(found[0].split()[1]) * 1024 if found else None


def measure_stages(setup: BenchSetup, execution: Execution, rounds: Rounds) -> Timings:
    """Time a step of AGD-FD and each of its stages.

    A memory larger than any of the paper's is timed as well.
    """
    learner = setup.learner("agd-fd", execution)
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
        "checks": lambda: learner.see(batch),
    }
    inner = _time_inner_stages(learner)
    timings = time_interleaved(functions, rounds)
    count = len(timings.seconds["step"])  # without the warm-up round
    return Timings({**timings.seconds, **{name: inner[name][-count:] for name in inner}})


def _time_inner_stages(learner: FixedDirections) -> dict[str, list[float]]:
    """Return lists to which each later step appends the seconds of its loss and its optimizer.

    The loss is its forward and backward pass. Hooks measure it within a step, because outside of it
    it would need a backward pass of its own and find other data in the caches.
    """
    seconds: dict[str, list[float]] = {"loss": [], "optimizer": []}
    compute_loss: Callable[..., Tensor] = learner.loss_of
    start = forward_seconds = 0.0

    def start_clock(*_: object) -> None:
        nonlocal start
        start = time.perf_counter()

    def timed_loss(z: Tensor, *rest: Any) -> Tensor:
        nonlocal forward_seconds
        before = time.perf_counter()
        loss = compute_loss(z, *rest)
        forward_seconds = time.perf_counter() - before
        loss.register_hook(start_clock)
        z.register_hook(lambda _: seconds["loss"].append(forward_seconds + elapsed()))
        return loss

    def elapsed() -> float:
        return time.perf_counter() - start

    optimizer = learner.engine.optimizer
    optimizer.register_step_pre_hook(start_clock)
    optimizer.register_step_post_hook(lambda *_: seconds["optimizer"].append(elapsed()))
    setattr(learner, "loss_of", timed_loss)  # noqa: B010 - mypy: a method
    return seconds


def measure_evaluation(
    setup: BenchSetup, execution: Execution, images: int, rounds: Rounds
) -> Timings:
    """Time predictions: by `predict_all`, and by the plain network in small batches."""
    learner = setup.learner("er", execution)
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

    def with_image_size(size: int) -> tuple[BenchSetup, int]:
        return replace(setup, image_size=size), 0

    cases: tuple[tuple[str, int, int, Callable[[int], tuple[BenchSetup, int]]], ...] = (
        # The setup of a size, and the number of stream images before the step.
        ("steps of the stream", 1_000, 100_000, lambda size: (linear, size * linear.batch_size)),
        (
            "images in memory",
            1_000,
            100_000,
            lambda size: (replace(linear, memory=size), 10 * size),
        ),
        ("classes", 10, 1_000, lambda size: (replace(linear, classes=size), 0)),
        ("image size in pixels", 16, 32, with_image_size),
        ("image size in pixels", 16, 64, with_image_size),
    )
    for quantity, small, large, setup_of in cases:
        functions = {
            str(size): _steps_function(*setup_of(size), execution) for size in (small, large)
        }
        ratio = time_interleaved(functions, rounds).ratio(str(large), str(small))
        yield Scaling(quantity, small, large, ratio)


def _steps_function(setup: BenchSetup, samples: int, execution: Execution) -> Callable[[], None]:
    learner, batch = setup.learner_after(samples, execution), setup.batch(seed=1)
    steps = LINEAR_STEPS if setup.encoder == "flatten" else 1

    def take_steps() -> None:
        for _ in range(steps):
            learner.observe(batch)

    return take_steps
