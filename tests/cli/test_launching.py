from dataclasses import dataclass
from pathlib import Path

import pytest

from sterad.cli import main
from sterad.cli.components import Request, parse_request
from sterad.errors import SteradError
from sterad.experiments.launchers import Local, Ray, Slurm
from sterad.experiments.launchers.local import RUNS_PER_CORE
from sterad.threads import cores

STUDY = """
[fixed]
dataset = "synthetic"
classes = 2
per_class = 6
test-per-class = 2
tasks = 2
memory = 4
width = 2
method = "finetune"
"""


@dataclass(frozen=True)
class Few:
    """A command with few options."""

    out: Path = Path("runs")
    """Where."""
    plugin: tuple[Path, ...] = ()
    """Files."""


def asked(words: list[str]) -> Request:
    return parse_request(words, "command", "about", None, ("launcher",), {"Options": (Few,)})


@pytest.mark.parametrize(
    ("words", "launcher"),
    [
        ([], Local()),
        (["--workers", "3"], Local(3)),
        (["--launcher", "ray", "--gpus", "0.25", "--shared"], Ray(gpus=0.25, shared=True)),
        (["--launcher=ray", "--address", "head:6379"], Ray("head:6379")),
        (["--launcher", "SLURM", "--memory-gb", "2"], Slurm(memory_gb=2.0)),
    ],
)
def test_fields_of_the_launcher_are_options(words: list[str], launcher: object) -> None:
    made = asked(["--out", "there", *words])
    assert made.take(Few) == Few(Path("there"))
    assert made.component("launcher") == launcher


def test_an_unknown_launcher_is_a_sentence() -> None:
    with pytest.raises(SteradError, match=r"unknown launcher 'rey': did you mean 'ray'"):
        asked(["--launcher", "rey"])


@pytest.mark.parametrize(
    ("words", "told"),
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
def test_values_that_no_launcher_can_have(words: list[str], told: str) -> None:
    with pytest.raises(SteradError) as refused:
        asked(words)
    assert str(refused.value) == told


def test_more_workers_than_the_machine_can_run_are_refused() -> None:
    most = RUNS_PER_CORE * cores()
    assert asked(["--workers", str(most)]).component("launcher") == Local(most)
    with pytest.raises(SteradError, match=rf"^workers {most + 1} .* so give at most {most}$"):
        asked(["--workers", str(most + 1)]).component("launcher")


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
        "    def launch(self, jobs, watch):\n"
        "        return iter(())\n"
    )
    words = ["--plugin", str(file), "--launcher", "mine", "--speed", "9"]
    assert vars(asked(words).component("launcher")) == {"speed": 9}


def test_a_study_with_a_logger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    words = ["study", str(tmp_path / "small.toml"), "--out", str(tmp_path / "runs")]
    assert main([*words, "--logger", "tensorbord"]) == 2
    assert "did you mean 'tensorboard'" in capsys.readouterr().err
    assert main([*words, "--threads", "1", "--logger", "tensorboard"]) == 0
    assert list(tmp_path.glob("runs/*/tensorboard/events.*"))
    assert "finetune" in capsys.readouterr().out
