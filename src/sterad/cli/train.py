"""`sterad train`: the main job. Fields of method, dataset and stream are options by their names."""

import dataclasses
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from sterad.data import DATASETS
from sterad.errors import SteradError
from sterad.experiments.config import ALIASES, Protocol, RunConfig, deal
from sterad.experiments.execution import Execution
from sterad.experiments.fields import build
from sterad.experiments.run import run
from sterad.methods import METHODS
from sterad.registry import Registry, load_plugin
from sterad.results.record import METRICS, RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.sinks import progress_sink
from sterad.streams import STREAMS

NAMES: dict[str, Registry[Any]] = {"method": METHODS, "dataset": DATASETS, "stream": STREAMS}


@dataclass(frozen=True)
class Place:
    """Where and how the run is computed: nothing here changes its id."""

    out: Path = Path("runs")
    """Where the directories of runs are."""
    checkpoint_every: int = 500
    """Steps between checkpoints; ends of tasks have one too."""
    threads: int | None = None
    """Processor threads; as the images ask by default. A begun run keeps what it began with."""
    device: str | None = None
    """cuda where there is one, else cpu. A begun run keeps what it began with."""
    config: Path | None = None
    """A TOML file with values by their names; the command line stands above it."""
    plugin: tuple[Path, ...] = ()
    """Python files that register your own methods, datasets, streams."""


def main(argv: list[str]) -> int:
    """Read the options of the named method, dataset and stream; run; print what came of it."""
    argv = [_unaliased(word) for word in argv]
    chosen, given = _peek(argv)
    parsed = tyro.cli(
        _options(chosen, given),
        args=argv,
        prog="sterad train",
        config=(tyro.conf.OmitArgPrefixes,),
        description=_description(chosen),
    )
    config = RunConfig.of(**_flat(parsed))
    where: Place = parsed.place
    execution = Execution.chosen(where.device, where.threads)
    finished = RunDirectory(where.out, config.id).record.exists()
    sinks = [] if finished else [progress_sink(config.id)]
    record = run(config, where.out, execution, where.checkpoint_every, sinks)
    _print(record, RunDirectory(where.out, config.id), finished)
    return 0


def _unaliased(word: str) -> str:
    name, equals, value = word.partition("=")
    key = name.removeprefix("--").replace("-", "_")
    if name.startswith("--") and key in ALIASES:
        return f"--{ALIASES[key]}{equals}{value}"
    return word


def _peek(argv: list[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the chosen method, dataset and stream and the values of a file, before parsing."""
    for file in _values(argv, "plugin"):
        load_plugin(file)
    given = _read(Path(_values(argv, "config")[-1])) if _values(argv, "config") else {}
    chosen = {"method": "agd-fd", "dataset": "digits", "stream": "clear"}
    chosen |= {name: given.pop(name) for name in chosen if name in given}
    if argv and not argv[0].startswith("-"):
        chosen["method"] = argv[0]
    for name in ("dataset", "stream"):
        if values := _values(argv, name):
            chosen[name] = values[-1]
    return {name: NAMES[name].resolve(value) for name, value in chosen.items()}, given


def _values(argv: list[str], option: str) -> list[str]:
    values: list[str] = []
    for at, word in enumerate(argv):
        if word.startswith(f"--{option}="):
            values.append(word.partition("=")[2])
        elif word == f"--{option}":
            rest = argv[at + 1 :]
            end = next((i for i, w in enumerate(rest) if w.startswith("--")), len(rest))
            values += rest[: end if option == "plugin" else 1]
    return values


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except OSError as error:
        raise SteradError(f"cannot read the config {str(file)!r}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise SteradError(f"the config {str(file)!r} is not TOML: {error}") from error


def _options(chosen: dict[str, str], given: dict[str, Any]) -> type[Any]:
    """Return a dataclass whose flattened fields are all options of what was chosen."""
    owners: dict[str, type[Any]] = {
        "protocol": Protocol,
        "of_method": METHODS[chosen["method"]].Config,
        "of_dataset": DATASETS[chosen["dataset"]],
        "of_stream": STREAMS[chosen["stream"]],
    }
    parts = deal(given, owners, "the config file")
    nested = [
        (name, owner, field(default=build(owner, parts[name]))) for name, owner in owners.items()
    ]
    positional = Annotated[str, tyro.conf.Positional, tyro.conf.arg(help="see `sterad list`")]
    words = [
        ("method", positional, field(default=chosen["method"])),
        ("dataset", Annotated[str, tyro.conf.arg(help="see `sterad list`")], chosen["dataset"]),
        ("stream", Annotated[str, tyro.conf.arg(help="see `sterad list`")], chosen["stream"]),
    ]
    return dataclasses.make_dataclass(
        "Options", [*words, *nested, ("place", Place, field(default=Place()))], frozen=True
    )


def _description(chosen: dict[str, str]) -> str:
    document = METHODS[chosen["method"]].__doc__ or ""
    return f"{chosen['method']}: {document.partition(chr(10))[0]}"


def _flat(parsed: Any) -> dict[str, Any]:
    flat = {name: getattr(parsed, name) for name in NAMES}
    for part in ("protocol", "of_method", "of_dataset", "of_stream"):
        value = getattr(parsed, part)
        flat |= {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    return flat


def _print(record: RunRecord, place: RunDirectory, finished: bool) -> None:
    print(f"{record.id}{' (finished before)' if finished else ''}")
    for name in METRICS:
        value = getattr(record, name)
        if value is not None:
            print(f"  {name.replace('_', ' '):28} {value:8.2%}")
    print(f"  {'seconds':28} {record.seconds:8.1f}")
    print(place.record)
    sys.stdout.flush()
