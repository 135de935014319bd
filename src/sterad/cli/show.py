"""`sterad show`: one run on a screen of the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sterad.cli.options import parse_options, positional
from sterad.cli.repeat import changed_paths, repeat_command, repeat_note
from sterad.cli.terminal import make_console, print_rows
from sterad.errors import SteradError
from sterad.report.sparkline import curve_line
from sterad.report.tables import METRIC_MEANINGS, metric_title, percent
from sterad.report.text import format_age, format_duration, format_quantity
from sterad.results.grouping import format_setting
from sterad.results.record import METRICS, RunRecord
from sterad.results.stored_run import StoredRun, age_of, resolve_run

CURVE_WIDTH = 40
TASK_WIDTH = 24
MAX_TASKS = 12
"""Tasks with a line of their own; more are printed without curves."""
Rows = Iterator[tuple[str | Text, ...]]


@dataclass(frozen=True)
class ShowOptions:
    """Print one run: state, settings, accuracy along the stream, metrics, cost and origin.

    RUN is a run directory, a record file, an id or the unique beginning of an id.
    """

    run: str = positional("RUN")
    """Run directory, record file, id, or the beginning of an id."""
    out: Path = Path("runs")
    """Folder of runs in which ids are looked up."""


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: ShowOptions = parse_options(ShowOptions, argv, "sterad show")
    run = resolve_run(options.run, options.out)
    if run.state == "damaged":
        raise SteradError(run.problem)
    print_run(run, make_console())
    return 0


def print_run(run: StoredRun, console: Console) -> None:
    """Print everything about one run."""
    title = f"{run.value('method.name')} on {run.value('dataset.name')}"
    title += f", {run.value('stream.name')} stream, seed {run.value('seed')}"
    console.print(Text(title, style="bold"))
    print_rows(console, "", _summary(run))
    print_rows(console, "Accuracy on seen classes along the stream (%)", _curve(run))
    if run.record is not None:
        print_rows(console, "Metrics (%)", _metrics(run.record))
        print_rows(console, "Tasks at the end (%)", _tasks(run.record))
        print_rows(console, "Cost", _cost(run.record))
        print_rows(console, "Origin", _origin(run.record))
    verb = "Repeat" if run.record is not None else "Continue"
    console.print(Text(f"\n{verb} with", style="bold"))
    console.print(f"  {repeat_command(run)}", soft_wrap=True)  # one line, to be copied
    if note := repeat_note(run):
        console.print(f"  {note}")


def _summary(run: StoredRun) -> Rows:
    yield "run", run.id
    yield "folder", str(run.path)
    yield "state", describe_state(run)
    if run.record is not None:
        stream = run.record.stream
        ends = "announced" if stream.announced else "not announced"
        yield (
            "stream",
            f"{stream.samples:,} images in {stream.steps:,} steps, {len(stream.tasks)} tasks, "
            f"ends {ends}",
        )
    changed = changed_paths(run)
    paths = [p for p, v in run.settings.items() if v not in (None, False)]
    shown = [p for p in (paths if changed is None else changed) if not p.startswith("digests.")]
    texts = [
        format_setting(path, run.settings[path])
        for path in shown
        if path != "seed" and not path.endswith(".name")
    ]
    yield "settings" if changed is None else "not default", ", ".join(texts) or "none"


def describe_state(run: StoredRun) -> str:
    """Return the state, the progress of an unfinished run, and the time of the last change."""
    age = format_age(age_of(run))
    if run.state == "finished":
        return f"finished {age} ago"
    total = "?" if run.steps is None else f"{run.steps:,}"
    share = f" ({run.step / run.steps:.0%})" if run.steps else ""
    return f"{run.state}: step {run.step:,} of {total}{share}, last change {age} ago"


def _curve(run: StoredRun) -> Rows:
    if run.curve:
        values = [accuracy for _, accuracy in run.curve]
        line = curve_line(run.curve, CURVE_WIDTH, run.samples)
        text = f"{percent(min(values))} to {percent(max(values))}"
        yield line, text if run.record is not None else f"{text}, last {percent(values[-1])}"
    elif run.record is None:
        yield "no evaluation yet", ""


def _metrics(record: RunRecord) -> Rows:
    for metric in METRICS:
        value = getattr(record, metric)
        if value is not None:
            meaning = Text(METRIC_MEANINGS[metric], style="dim")
            yield metric_title(metric), Text(f"{percent(value):>6}", style="bold"), meaning


def _tasks(record: RunRecord) -> Rows:
    last = record.moments[-1].cells
    if len(record.evaluations) > MAX_TASKS:
        texts = [f"{n} {percent(c)}" for n, c in zip(record.evaluations, last, strict=True)]
        yield "", ", ".join(texts)
        return
    for task, name in enumerate(record.evaluations):
        curve = [(moment.samples, moment.cells[task]) for moment in record.moments]
        line = curve_line(curve, TASK_WIDTH, record.stream.samples)
        yield name, f"{percent(last[task]):>6}", Text(line, style="cyan")


def _cost(record: RunRecord) -> Rows:
    yield "time", format_duration(record.seconds)
    yield (
        "images",
        f"{record.images_per_batch:,.0f} through the network per batch, "
        f"{record.images_per_second:,.0f} per second",
    )
    if record.cost is not None:
        pixels, products = record.pixels_per_batch, record.multiply_adds_per_batch
        numbers = f"{format_quantity(pixels)} pixels, {format_quantity(products)} multiply-adds"
        yield "per batch", f"{numbers}; state {record.state_bytes / 2**20:,.1f} MiB"
    yield "peak memory", f"{record.peak_memory_bytes / 2**20:,.0f} MiB"
    execution = (format_setting(name, value) for name, value in record.execution.items())
    yield "execution", ", ".join(execution)


def _origin(record: RunRecord) -> Rows:
    facts = record.provenance
    commit = facts.get("git_commit")  # an installed package has none
    yield "code", f"sterad {facts.get('version', '?')}" + (f", commit {commit}" if commit else "")
    libraries = [f"{name} {facts[name]}" for name in ("python", "torch", "numpy") if name in facts]
    if libraries:
        yield "libraries", ", ".join(libraries)
    if "machine" in facts:
        yield "machine", str(facts["machine"])
    if record.data_digest:
        yield "data", f"digest {record.data_digest}"
    if record.stream.digest:
        yield "order", f"digest {record.stream.digest[:12]}"
    for change in record.changes:
        yield "changed", change
