"""The time of a step relative to the fastest mode of the bare network."""

from collections.abc import Callable, Mapping

import pytest
import torch._dynamo.utils

from sterad.bench import measurements
from sterad.bench.measurements import SELECTION_ROUNDS, measure_step
from sterad.bench.setup import BenchSetup
from sterad.bench.timing import Rounds, Timings
from sterad.engine.execution import Execution

SETUP = BenchSetup(image_size=8, channels=1, classes=5, memory=300, width=16)
Functions = Mapping[str, Callable[[], object]]


@pytest.fixture
def modes(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Record which modes of the bare network compete; the last one is made the fastest."""
    recorded: list[set[str]] = []

    def time_once(functions: Functions, rounds: Rounds) -> Timings:
        for function in functions.values():
            function()
        if rounds is SELECTION_ROUNDS:
            recorded.append(set(functions))
        return Timings({name: [1.0 / i] for i, name in enumerate(functions, start=1)})

    monkeypatch.setattr(measurements, "time_interleaved", time_once)
    monkeypatch.setattr(measurements, "cores", lambda: 2)
    return recorded


def test_parallel_passes_compete_with_sequential_ones(modes: list[set[str]]) -> None:
    execution = Execution(threads=1, view_threads=2, compile=False)
    cost = measure_step(SETUP, "agd-fd", execution, Rounds(1))
    assert modes == [{"sequential", "parallel"}]
    assert cost.bare_mode == "parallel", "the fastest mode"
    assert (cost.seconds.median, cost.bare_seconds.median) == (1.0, 0.5)
    assert (cost.ratio.median, cost.overhead.median) == (2.0, 0.5)
    assert cost.images_per_second == 444.0


def test_a_single_pass_has_one_mode(modes: list[set[str]]) -> None:
    cost = measure_step(SETUP, "er", Execution(threads=1, compile=False), Rounds(1))
    assert (modes, cost.bare_mode) == ([], "sequential")


@pytest.mark.usefixtures("modes")
def test_a_method_with_experts_is_timed_with_its_own_fields() -> None:
    cost = measure_step(SETUP, "mose", Execution(threads=1, compile=False), Rounds(1))
    assert cost.trained_images == 4 * (10 + 64)
    execution = Execution(threads=1, compile=False)
    fewer = measure_step(SETUP, "mose", execution, Rounds(1), memory_batch=8)
    assert fewer.trained_images == 4 * (10 + 8)


@pytest.mark.slow
@pytest.mark.usefixtures("_compiler")
@pytest.mark.filterwarnings("ignore")  # warnings of torch about its own internals
def test_a_compiled_step_is_compared_with_a_compiled_network(modes: list[set[str]]) -> None:
    execution = Execution(threads=1, view_threads=2, compile=True)
    assert measure_step(SETUP, "agd-fd", execution, Rounds(1)).bare_mode == "parallel"
    assert measure_step(SETUP, "er", execution, Rounds(1)).bare_mode == "compiled"
    assert modes == [{"sequential", "parallel"}, {"sequential", "compiled"}]
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 1
