from dataclasses import dataclass
from pathlib import Path

import pytest

from sterad.cli.components import Request, RequestParser
from sterad.errors import SteradError
from sterad.experiments.launchers import Local, Ray, Slurm
from sterad.experiments.launchers.local import MAX_RUNS_PER_CORE
from sterad.threads import cores


@dataclass(frozen=True)
class Options:
    """The options of a command."""

    out: Path = Path("runs")
    """Folder."""
    plugin: tuple[Path, ...] = ()
    """Files."""


def parse(argv: list[str]) -> Request:
    sections = {"Options": (Options,)}
    return RequestParser("command", "about", None, ("launcher",), sections).parse(argv)


@pytest.mark.parametrize(
    ("argv", "launcher"),
    [
        ([], Local()),
        (["--workers", "3"], Local(3)),
        (["--launcher", "ray", "--gpus", "0.25", "--shared"], Ray(gpus=0.25, shared=True)),
        (["--launcher=ray", "--address", "head:6379"], Ray("head:6379")),
        (["--launcher", "SLURM", "--memory-gb", "2"], Slurm(memory_gb=2.0)),
    ],
)
def test_fields_of_a_launcher_are_options(argv: list[str], launcher: object) -> None:
    parsed = parse(["--out", "there", *argv])
    assert parsed.take(Options) == Options(Path("there"))
    assert parsed.component("launcher") == launcher


def test_an_unknown_launcher_is_an_error() -> None:
    with pytest.raises(SteradError, match=r"unknown launcher 'rey': did you mean 'ray'"):
        parse(["--launcher", "rey"])


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["--workers", "0"], "--workers 0 is out of range: give an integer from 1 to 1,000,000"),
        (
            ["--launcher", "slurm", "--memory-gb", "0"],
            "--memory-gb 0.0 is out of range: give a number in (0, 1e+06]",
        ),
        (
            ["--launcher", "slurm", "--cluster", "pbs"],
            "--cluster 'pbs' is unknown: choose slurm or local",
        ),
        (["--gpus", "1"], "unknown option --gpus: it belongs to the launcher ray, slurm"),
    ],
)
def test_invalid_launcher_options_are_refused(argv: list[str], error: str) -> None:
    with pytest.raises(SteradError) as caught:
        parse(argv)
    assert str(caught.value) == error


def test_too_many_workers_are_refused() -> None:
    limit = MAX_RUNS_PER_CORE * cores()
    assert parse(["--workers", str(limit)]).component("launcher") == Local(limit)
    with pytest.raises(SteradError, match=rf"^workers {limit + 1} .* so give at most {limit}$"):
        parse(["--workers", str(limit + 1)]).component("launcher")


def test_a_launcher_from_a_plugin(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from sterad.experiments.launchers import LAUNCHERS\n"
        "@LAUNCHERS.register('mine')\n"
        "@dataclass(frozen=True)\n"
        "class Mine:\n"
        "    'Runs nothing.'\n"
        "    speed: int = 1\n"
        "    def launch(self, jobs, on_event):\n"
        "        return iter(())\n"
    )
    argv = ["--plugin", str(file), "--launcher", "mine", "--speed", "9"]
    assert vars(parse(argv).component("launcher")) == {"speed": 9}
