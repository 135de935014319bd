"""`sterad bench`: how near each step comes to the bare network, on the machine at hand."""

import dataclasses
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich import box
from rich.console import Console
from rich.table import Table

from sterad.atomic import write_atomically
from sterad.bench.answers import answer_timings
from sterad.bench.growth import Growth, growths
from sterad.bench.interleaved import Spread, Timings, Turns
from sterad.bench.stages import stage_timings
from sterad.bench.steps import StepCost, step_costs
from sterad.bench.subject import Scene
from sterad.cli.options import positional, read
from sterad.data.progress import progress
from sterad.engine.execution import Execution, Precision
from sterad.experiments.provenance import provenance
from sterad.methods import METHODS
from sterad.validation import Range

console = Console(highlight=False)


@dataclass(frozen=True)
class BenchOptions:
    """Time a step of each method beside the bare network; everything is a ratio within one run.

    Without options it takes about ten minutes; `sterad bench er agd-fd` times two methods.
    """

    methods: tuple[str, ...] = positional("METHOD ...", ())
    """Methods to time (default: all)."""
    full: bool = False
    """A network of width 64 instead of 20, which takes four times as long."""
    image_size: Annotated[int, Range(8, 512)] = 32
    """Pixels a side."""
    rounds: Annotated[int, Range(1, 10_000)] = 12
    """How often all contenders take their turns, at least."""
    seconds: Annotated[float, Range(0, 3600)] = 5.0
    """How long they go on at least, so that short steps take more turns."""
    images: Annotated[int, Range(1, 100_000)] = 500
    """Images predicted to compare evaluations."""
    precision: Precision | None = None
    """Of the encoder (default: what the machine has units for)."""
    compile: bool | None = None
    """Compile single passes or not (default: as a run of 10,000 steps does)."""
    json: Path | None = None
    """Also write every number there."""


def bench(options: BenchOptions) -> None:
    """Print each result as it is found, then the tables."""
    scene = Scene(options.image_size, width=64 if options.full else 20)
    turns = Turns(options.rounds, options.seconds)
    execution = Execution.chosen(precision=options.precision, compile=options.compile)
    settled = scene.settled(execution)
    execution = dataclasses.replace(execution, precision=settled.precision)  # at any size of images
    names = [METHODS.resolve(one) for one in options.methods] or list(METHODS)
    compiled = "compiled where passes go alone" if settled.compile else "nothing compiled"
    console.print(provenance()["machine"])
    console.print(
        f"{settled.threads} threads, {settled.precision}, {compiled}; images of "
        f"{scene.image_size} pixels, ResNet-18 of width {scene.width}"
    )
    parts = len(names) + 3
    console.print("each method takes half a minute or more; torch may compile first")
    with progress("benchmark", parts, "parts") as advance:
        steps = list(_shown(step_costs(scene, names, execution, turns), advance))
        stages = stage_timings(scene, "agd-fd", execution, turns)
        _print_stages(stages)
        advance(1)
        answers = answer_timings(scene, execution, options.images, turns)
        console.print(f"evaluation: {options.images / answers.of('sterad').median:.0f} images/s,")
        console.print(f"  {answers.ratio('small', 'sterad')} times as fast as in batches of 10")
        advance(1)
        grown = list(growths(scene, execution, turns))
        _print_growth(grown)
        advance(1)
    _print_steps(steps)
    if options.json is not None:
        found = {
            "machine": provenance(),
            "execution": dataclasses.asdict(settled),
            "scene": dataclasses.asdict(scene),
            "steps": [dataclasses.asdict(one) for one in steps],
            "stages": _plain(stages),
            "answers": _plain(answers),
            "growth": [dataclasses.asdict(one) for one in grown],
        }
        write_atomically(options.json, json.dumps(found, indent=1) + "\n")
        print(options.json)


def _shown(costs: Iterable[StepCost], advance: Callable[[int], None]) -> Iterable[StepCost]:
    """Pass costs on, with a line for each as soon as it is known."""
    for cost in costs:
        above = f"{1000 * cost.above.median:.1f} ms above"
        console.print(f"  {cost.method}: {cost.ratio} times its limit, {above}")
        advance(1)
        yield cost


def _plain(timings: Timings) -> dict[str, Any]:
    return {name: dataclasses.asdict(timings.of(name)) for name in timings.seconds}


def _print_steps(steps: Iterable[StepCost]) -> None:
    table = _table("A step over the bare network on the same images", "method")
    for name in ("images", "step, ms", "limit, ms", "ratio", "images/s", "MB"):
        table.add_column(name, justify="right")
    for one in steps:
        looked = f" + {one.looking_images}" if one.looking_images else ""
        table.add_row(
            one.method,
            f"{one.learning_images}{looked}",
            _ms(one.seconds),
            _ms(one.limit_seconds),
            str(one.ratio),
            f"{one.images_per_second:.0f}",
            "–" if one.peak_bytes is None else f"{one.peak_bytes / 1e6:.0f}",
        )
    console.print(table)
    console.print("  images: forward and back, + those that only go forward")


def _print_stages(timings: Timings) -> None:
    table = _table("Stages of agd-fd", "stage")
    for name in ("ms", "share of the step"):
        table.add_column(name, justify="right")
    for name in timings.seconds:
        share = timings.ratio(name, "step").median
        table.add_row(name, _ms(timings.of(name)), f"{share:.2%}")
    console.print(table)


def _print_growth(grown: Iterable[Growth]) -> None:
    table = _table("Growth", "a step of er with more")
    for name in ("from", "to", "ratio"):
        table.add_column(name, justify="right")
    for one in grown:
        table.add_row(one.what, f"{one.small:,}", f"{one.large:,}", str(one.ratio))
    console.print(table)


def _table(title: str, first: str) -> Table:
    return Table(
        first, title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0)
    )


def _ms(spread: Spread) -> str:
    milliseconds = 1000 * spread.median
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: BenchOptions = read(BenchOptions, argv, "sterad bench")
    with warnings.catch_warnings():
        # What torch says while it compiles concerns its developers, and stands between the results.
        warnings.filterwarnings("ignore", module=r"torch\.")
        bench(options)
    return 0
