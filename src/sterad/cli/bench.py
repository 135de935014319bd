"""`sterad bench`: step time of each method relative to the bare network, on this machine."""

import dataclasses
import json
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich import box
from rich.console import Console
from rich.table import Column, Table

from sterad.bench.measurements import (
    Scaling,
    StepCost,
    measure_evaluation,
    measure_scaling,
    measure_stages,
    measure_step,
)
from sterad.bench.setup import BenchSetup
from sterad.bench.timing import Rounds, Spread, Timings
from sterad.cli.options import parse_options, positional
from sterad.data.progress import progress
from sterad.engine.execution import Execution, Precision
from sterad.errors import SteradError
from sterad.experiments.run import provenance
from sterad.files import write_atomically
from sterad.methods import METHODS, Replay
from sterad.validation import Range

console = Console(highlight=False)
QUICK_METHODS = ("er", "agd-fd")
"""Methods that are timed by default: single passes, and parallel ones."""
QUICK_ROUNDS, THOROUGH_ROUNDS = Rounds(5, 2.0, limit=20.0), Rounds(12, 5.0)


@dataclass(frozen=True)
class BenchOptions:
    """Time a step of each method relative to the bare network on the same images.

    A method takes 10 to 30 seconds on two idle cores; on a slow or busy machine there are fewer
    rounds.
    """

    methods: tuple[str, ...] = positional("METHOD ...", ())
    """Methods to time (default: er and agd-fd; with --thorough all that train a network)."""
    thorough: bool = False
    """Take more rounds, compile as long runs do, and also time the stages of a step, evaluation and
    scaling: two minutes, and another half a minute per method."""
    full: bool = False
    """Use a network of width 64 instead of 20; takes four times as long."""
    image_size: Annotated[int, Range(8, 512)] = 32
    """Height and width of the images in pixels."""
    rounds: Annotated[int, Range(1, 10_000)] | None = None
    """Minimum number of timing rounds (default: 5, or fewer that take 20 seconds; with --thorough
    12)."""
    seconds: Annotated[float, Range(0, 3600)] | None = None
    """Minimum seconds per measurement (default: 2; with --thorough 5): short steps get more
    rounds."""
    images: Annotated[int, Range(1, 100_000)] = 500
    """Number of images to predict when --thorough times evaluation."""
    precision: Precision | None = None
    """Precision of the encoder (default: the fastest on this machine)."""
    compile: bool | None = None
    """Compile single forward passes (default: no; with --thorough as in a run of 10,000 steps)."""
    json: Path | None = None
    """Also write all results to this JSON file."""


def bench(options: BenchOptions) -> None:
    """Measure everything, print each result as soon as it is known, and print the tables."""
    names = choose_methods(options.methods, options.thorough)
    setup = BenchSetup(options.image_size, width=64 if options.full else 20)
    rounds, (execution, resolved) = choose_rounds(options), choose_execution(options, setup)
    compiled = "single passes compiled" if resolved.compile else "nothing compiled"
    console.print(provenance()["machine"])
    console.print(
        f"{resolved.threads} threads, {resolved.precision}, {compiled}; images of "
        f"{setup.image_size} pixels, ResNet-18 of width {setup.width}"
    )
    duration = "30 seconds or more; torch may compile first" if options.thorough else "10 to 30 s"
    console.print(f"{len(names)} method{'s' * (len(names) > 1)}, each takes {duration}")
    results: dict[str, Any] = {
        "machine": provenance(),
        "execution": dataclasses.asdict(resolved),
        "setup": dataclasses.asdict(setup),
    }
    with progress("benchmark", len(names) + 3 * options.thorough, "parts") as advance:
        steps = []
        for name in names:
            steps.append(measure_step(setup, name, execution, rounds))
            _print_step(steps[-1])
            advance(1)
        results["steps"] = [dataclasses.asdict(cost) for cost in steps]
        if options.thorough:
            for name, measure in _THOROUGH_PARTS.items():
                results[name] = measure(setup, execution, rounds, options.images)
                advance(1)
    _print_steps(steps)
    if options.json is not None:
        write_atomically(options.json, json.dumps(results, indent=1) + "\n")
        print(options.json)


def choose_rounds(options: BenchOptions) -> Rounds:
    """Return the given rounds and seconds, or the defaults of a quick or a thorough bench."""
    default = THOROUGH_ROUNDS if options.thorough else QUICK_ROUNDS
    seconds = default.seconds if options.seconds is None else options.seconds
    limit = default.limit if options.rounds is None else math.inf
    return Rounds(options.rounds or default.count, seconds, limit)


def choose_execution(options: BenchOptions, setup: BenchSetup) -> tuple[Execution, Execution]:
    """Return the execution of the measurements, and the same with all fields of this setup."""
    compile = options.compile if options.compile is not None or options.thorough else False
    execution = Execution.from_options(precision=options.precision, compile=compile)
    resolved = setup.resolve(execution)
    # The precision chosen for this image size also applies to the other sizes.
    return dataclasses.replace(execution, precision=resolved.precision), resolved


def _time_stages(setup: BenchSetup, execution: Execution, rounds: Rounds, _: int) -> Any:
    stages = measure_stages(setup, execution, rounds)
    _print_stages(stages)
    return _to_dict(stages)


def _time_evaluation(setup: BenchSetup, execution: Execution, rounds: Rounds, images: int) -> Any:
    evaluation = measure_evaluation(setup, execution, images, rounds)
    console.print(f"evaluation: {images / evaluation.of('sterad').median:.0f} images/s,")
    speedup = evaluation.ratio("small batches", "sterad")
    console.print(f"  {speedup} times as fast as in batches of 10")
    return _to_dict(evaluation)


def _time_scaling(setup: BenchSetup, execution: Execution, rounds: Rounds, _: int) -> Any:
    scaling = list(measure_scaling(setup, execution, rounds))
    _print_scaling(scaling)
    return [dataclasses.asdict(row) for row in scaling]


_THOROUGH_PARTS = {
    "stages": _time_stages,
    "evaluation": _time_evaluation,
    "scaling": _time_scaling,
}
"""Further parts of a thorough bench, by their name in its JSON file."""


def choose_methods(names: Sequence[str], thorough: bool) -> list[str]:
    """Return the named methods, or the default ones; refuse those that train no network."""
    trained = [name for name in METHODS if issubclass(METHODS[name], Replay)]
    for name in names:
        if METHODS.resolve(name) not in trained:
            raise SteradError(
                f"{METHODS.resolve(name)} trains no network to compare its steps with: time it "
                "with benchmarks/feature_learners.py"
            )
    default = trained if thorough else list(QUICK_METHODS)
    return [METHODS.resolve(name) for name in names] or default


def _to_dict(timings: Timings) -> dict[str, Any]:
    return {name: dataclasses.asdict(timings.of(name)) for name in timings.seconds}


def _print_step(cost: StepCost) -> None:
    overhead = f"overhead {1000 * cost.overhead.median:.1f} ms"
    console.print(f"  {cost.method}: {cost.ratio} times the bare network, {overhead}")


def _print_steps(steps: Iterable[StepCost]) -> None:
    rows = []
    for cost in steps:
        forward_only = f" + {cost.forward_only_images}" if cost.forward_only_images else ""
        images = f"{cost.trained_images}{forward_only}"
        times = (_milliseconds(cost.seconds), _milliseconds(cost.bare_seconds), str(cost.ratio))
        peak = "–" if cost.peak_bytes is None else f"{cost.peak_bytes / 1e6:.0f}"
        rows.append((cost.method, images, *times, f"{cost.images_per_second:.0f}", peak))
    columns = ("method", "images", "step, ms", "bare, ms", "ratio", "images/s", "MB")
    _print_table("Step time relative to the bare network on the same images", columns, rows)
    console.print("  images: with forward and backward pass, + with forward pass only")


def _print_stages(timings: Timings) -> None:
    rows = [
        (name, _milliseconds(timings.of(name)), f"{timings.ratio(name, 'step').median:.2%}")
        for name in timings.seconds
    ]
    _print_table("Stages of agd-fd", ("stage", "ms", "share of the step"), rows)


def _print_scaling(scaling: Iterable[Scaling]) -> None:
    rows = [(row.quantity, f"{row.small:,}", f"{row.large:,}", str(row.ratio)) for row in scaling]
    _print_table("Step time of er at a larger size", ("quantity", "from", "to", "ratio"), rows)


def _print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose other columns are numbers."""
    first, *others = columns
    style: Any = {"box": box.SIMPLE_HEAD, "title_justify": "left", "padding": (0, 1, 0, 0)}
    table = Table(first, *(Column(name, justify="right") for name in others), title=title, **style)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _milliseconds(spread: Spread) -> str:
    milliseconds = 1000 * spread.median
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: BenchOptions = parse_options(BenchOptions, argv, "sterad bench")
    with warnings.catch_warnings():
        # Warnings of torch.compile are for its developers and would clutter the output.
        warnings.filterwarnings("ignore", module=r"torch\.")
        bench(options)
    return 0
