"""`sterad bench`: step time of each method relative to the bare network, on this machine."""

import dataclasses
import json
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


@dataclass(frozen=True)
class BenchOptions:
    """Time a step of each method relative to the bare network on the same images.

    All methods take about ten minutes; `sterad bench er agd-fd` times two of them.
    """

    methods: tuple[str, ...] = positional("METHOD ...", ())
    """Methods to time (default: all that train a network)."""
    full: bool = False
    """Use a network of width 64 instead of 20; takes four times as long."""
    image_size: Annotated[int, Range(8, 512)] = 32
    """Height and width of the images in pixels."""
    rounds: Annotated[int, Range(1, 10_000)] = 12
    """Minimum number of timing rounds."""
    seconds: Annotated[float, Range(0, 3600)] = 5.0
    """Minimum seconds per measurement; short steps get more rounds."""
    images: Annotated[int, Range(1, 100_000)] = 500
    """Number of images to predict when evaluation is timed."""
    precision: Precision | None = None
    """Precision of the encoder (default: the fastest on this machine)."""
    compile: bool | None = None
    """Compile single forward passes (default: as in a run of 10,000 steps)."""
    json: Path | None = None
    """Also write all results to this JSON file."""


def bench(options: BenchOptions) -> None:
    """Measure everything, print each result as soon as it is known, and print the tables."""
    setup = BenchSetup(options.image_size, width=64 if options.full else 20)
    rounds = Rounds(options.rounds, options.seconds)
    execution = Execution.from_options(precision=options.precision, compile=options.compile)
    resolved = setup.resolve(execution)
    # The precision chosen for this image size also applies to the other sizes.
    execution = dataclasses.replace(execution, precision=resolved.precision)
    names = choose_methods(options.methods)
    compiled = "single passes compiled" if resolved.compile else "nothing compiled"
    console.print(provenance()["machine"])
    console.print(
        f"{resolved.threads} threads, {resolved.precision}, {compiled}; images of "
        f"{setup.image_size} pixels, ResNet-18 of width {setup.width}"
    )
    console.print("each method takes half a minute or more; torch may compile first")
    steps = []
    with progress("benchmark", len(names) + 3, "parts") as advance:
        for name in names:
            cost = measure_step(setup, name, execution, rounds)
            overhead = f"overhead {1000 * cost.overhead.median:.1f} ms"
            console.print(f"  {name}: {cost.ratio} times the bare network, {overhead}")
            steps.append(cost)
            advance(1)
        stages = measure_stages(setup, execution, rounds)
        _print_stages(stages)
        advance(1)
        evaluation = measure_evaluation(setup, execution, options.images, rounds)
        rate = options.images / evaluation.of("sterad").median
        speedup = evaluation.ratio("small batches", "sterad")
        console.print(f"evaluation: {rate:.0f} images/s,")
        console.print(f"  {speedup} times as fast as in batches of 10")
        advance(1)
        scaling = list(measure_scaling(setup, execution, rounds))
        _print_scaling(scaling)
        advance(1)
    _print_steps(steps)
    if options.json is not None:
        results = {
            "machine": provenance(),
            "execution": dataclasses.asdict(resolved),
            "setup": dataclasses.asdict(setup),
            "steps": [dataclasses.asdict(cost) for cost in steps],
            "stages": _to_dict(stages),
            "evaluation": _to_dict(evaluation),
            "scaling": [dataclasses.asdict(row) for row in scaling],
        }
        write_atomically(options.json, json.dumps(results, indent=1) + "\n")
        print(options.json)


def choose_methods(names: Sequence[str]) -> list[str]:
    """Return the named methods, or all that train a network; refuse those that train none."""
    trained = [name for name in METHODS if issubclass(METHODS[name], Replay)]
    for name in names:
        if METHODS.resolve(name) not in trained:
            raise SteradError(
                f"{METHODS.resolve(name)} trains no network to compare its steps with: time it "
                "with benchmarks/feature_learners.py"
            )
    return [METHODS.resolve(name) for name in names] or trained


def _to_dict(timings: Timings) -> dict[str, Any]:
    return {name: dataclasses.asdict(timings.of(name)) for name in timings.seconds}


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
