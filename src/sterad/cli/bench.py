"""`sterad bench`: how near each step comes to the bare network, on the machine at hand."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import tyro
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
from sterad.errors import SteradError
from sterad.experiments.execution import Execution
from sterad.experiments.provenance import provenance
from sterad.methods import METHODS

console = Console(highlight=False)


def bench(
    method: tuple[str, ...] = (),
    full: bool = False,
    image_size: int = 32,
    rounds: int = 12,
    seconds: float = 5.0,
    images: int = 500,
    precision: str | None = None,
    compile: bool | None = None,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Time a step of each method beside the bare network; everything is a ratio within one run.

    Args:
        method: Methods to time; all by default.
        full: A network of width 64 instead of 20, which takes four times as long.
        image_size: Pixels a side.
        rounds: How often all contenders take their turns, at least.
        seconds: How long they go on at least, so that short steps take more turns.
        images: Images answered to compare evaluations.
        precision: float32, bfloat16 or float16; what the machine has units for by default.
        compile: --compile or --no-compile single passes; by default as a run of 10,000 steps does.
        json_file: Also write every number there.
    """
    if rounds < 1 or images < 1:
        raise SteradError(f"rounds {rounds} and images {images} must both be 1 or more")
    if not 0 <= seconds <= 3600:
        raise SteradError(f"seconds {seconds} is outside 0 to 3600: 5 are enough on quiet cores")
    scene, turns = Scene(image_size, width=64 if full else 20), Turns(rounds, seconds)
    execution = Execution.chosen(precision=precision, compile=compile)
    settled = scene.settled(execution)
    execution = dataclasses.replace(execution, precision=settled.precision)  # at any size of images
    console.print(f"{provenance()['machine']}; {dataclasses.asdict(settled)}")
    console.print(f"images of {scene.image_size} pixels, ResNet-18 of width {scene.width}")
    names = [METHODS.resolve(one) for one in method] or list(METHODS)
    steps = list(_shown(step_costs(scene, names, execution, turns)))
    stages = stage_timings(scene, "agd-fd", execution, turns)
    answers = answer_timings(scene, execution, images, turns)
    grown = list(growths(scene, execution, turns))
    _print_steps(steps)
    _print_stages(stages)
    console.print(f"evaluation: {images / answers.of('sterad').median:.0f} images a second,")
    console.print(f"  {answers.ratio('small', 'sterad')} times as fast as in batches of 10")
    _print_growth(grown)
    if json_file is not None:
        found = {
            "machine": provenance(),
            "execution": dataclasses.asdict(settled),
            "scene": dataclasses.asdict(scene),
            "steps": [dataclasses.asdict(one) for one in steps],
            "stages": _plain(stages),
            "answers": _plain(answers),
            "growth": [dataclasses.asdict(one) for one in grown],
        }
        write_atomically(json_file, json.dumps(found, indent=1) + "\n")
        print(json_file)


def _shown(costs: Iterable[StepCost]) -> Iterable[StepCost]:
    for cost in costs:
        above = f"{1000 * cost.above.median:.1f} ms above"
        console.print(f"  {cost.method}: {cost.ratio} times its limit, {above}")
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


def main(argv: list[str]) -> int:
    """Run the command."""
    tyro.cli(bench, args=argv, prog="sterad bench")
    return 0
