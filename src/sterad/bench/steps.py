"""Steps: what one step of each method costs over the bare network on the same images."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.bench.bare import Bare, expect
from sterad.bench.interleaved import Spread, Turns, interleaved
from sterad.bench.subject import Scene
from sterad.bench.workload import workload_of
from sterad.engine.execution import Execution
from sterad.methods.base.replay import Replay
from sterad.threads import cores

HEATS = Turns(rounds=4, seconds=2.0)
"""In which the ways of the bare network find the fastest, the only one to go beside the step."""


@dataclass(frozen=True)
class StepCost:
    """One row of the table."""

    method: str
    learning_images: int
    """Images that go forward and back in a step."""
    looking_images: int
    """Images that only go forward."""
    seconds: Spread
    limit_seconds: Spread
    limit: str
    """How the bare network was fastest."""
    ratio: Spread
    """The step over its limit, round by round."""
    above: Spread
    """Seconds of the step beyond its limit, round by round."""
    images_per_second: float
    peak_bytes: int | None
    """The largest resident size during the steps."""


def step_costs(
    scene: Scene, methods: Sequence[str], execution: Execution, turns: Turns
) -> Iterator[StepCost]:
    """Measure the methods one after the other, each beside its own limit."""
    for method in methods:
        yield _cost(scene, method, execution, turns)


def _cost(scene: Scene, method: str, execution: Execution, turns: Turns) -> StepCost:
    learner = scene.learner(method, execution)
    assert isinstance(learner, Replay)
    act = scene.act(learner)
    learner.network.sizes.clear()
    workload = workload_of(act)
    most = max(one.images for step in workload.steps for one in step)
    images = learner.engine.to_device(scene.batch(most).x)
    bare, threads = Bare(learner.network, learner.config, workload, images), cores()
    ways: dict[str, Callable[[], object]] = {"in turn": bare.in_turn}
    if threads > 1 and max(map(len, workload.steps)) > 1:
        ways["side by side"] = lambda: bare.side_by_side(threads)
    if learner.network.sizes:  # passes that go alone, where those are compiled
        expect(learner.network, workload)
        ways["compiled"] = bare.compiled().in_turn
    limit = interleaved(ways, HEATS).fastest(*ways) if len(ways) > 1 else "in turn"
    reset_peak()
    timings = interleaved({"step": act, limit: ways[limit]}, turns)
    pushed = workload.learning_images + workload.looking_images
    return StepCost(
        method=method,
        learning_images=workload.learning_images,
        looking_images=workload.looking_images,
        seconds=timings.of("step"),
        limit_seconds=timings.of(limit),
        limit=limit,
        ratio=timings.ratio("step", limit),
        above=timings.above("step", limit),
        images_per_second=pushed / timings.of("step").median,
        peak_bytes=peak(),
    )


def reset_peak() -> None:
    """Let the kernel forget how large this process has been, where it can."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int | None:
    """Return the largest resident size since `reset_peak`, where the kernel says it."""
    if sys.platform != "linux":
        return None
    lines = Path("/proc/self/status").read_text().splitlines()
    found = [line for line in lines if line.startswith("VmHWM:")]
    return int(found[0].split()[1]) * 1024 if found else None
