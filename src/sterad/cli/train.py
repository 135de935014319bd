"""`sterad train`: the main job. Fields of method, dataset and stream are options by their names."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from sterad.cli.machine import Machine
from sterad.cli.options import flat, parse
from sterad.experiments.config import Protocol, RunConfig
from sterad.experiments.launchers import Job
from sterad.results.record import METRICS, RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.sinks import progress_sink


@dataclass(frozen=True, kw_only=True)
class Place(Machine):
    """Where and how the run is computed: nothing here changes its id."""

    out: Path = Path("runs")
    """Where the directories of runs are."""
    checkpoint_every: int | None = None
    """Steps between checkpoints, beside those at the ends of tasks; by default as often as they
    take less than a hundredth of the time."""
    config: Path | None = None
    """A TOML file with values by their names; the command line stands above it."""
    tuned: str | None = None
    """Tuned values of this method: a name from `sterad list METHOD`, or the path of a file; the
    values of --config and of the command line stand above them."""
    sink: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """Also send events there, once for each: see `sterad list`."""
    plugin: tuple[Path, ...] = ()
    """Python files that register your own methods, datasets, streams."""


def main(argv: list[str]) -> int:
    """Read the options of the named method, dataset and stream; run; print what came of it."""
    extra = {"protocol": Protocol(), "place": Place()}
    parsed = parse(argv, "method", ("dataset", "stream"), extra, "sterad train")
    config = RunConfig.of(**flat(parsed, ("method", "dataset", "stream", "protocol")))
    where: Place = parsed.place
    job = Job(config, where.out, where.execution(), where.checkpoint_every, sinks=where.sink)
    finished = job.place.record.exists()
    record = job.run([] if finished else [progress_sink(config.id)])
    _print(record, job.place, finished)
    return 0


def _print(record: RunRecord, place: RunDirectory, finished: bool) -> None:
    print(f"{record.id}{' (finished before)' if finished else ''}")
    for name in METRICS:
        value = getattr(record, name)
        if value is not None:
            print(f"  {name.replace('_', ' '):28} {value:8.2%}")
    print(f"  {'seconds':28} {record.seconds:8.1f}")
    print(place.record)
    sys.stdout.flush()
