from dataclasses import dataclass
from pathlib import Path

import pytest

from sterad.cli import main
from sterad.cli.launching import parse_with_launcher
from sterad.errors import SteradError
from sterad.experiments.launchers import Local, Ray, Slurm

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
    options, made = parse_with_launcher(Few, ["--out", "there", *words], "command")
    assert options == Few(Path("there"))
    assert made == launcher


def test_an_unknown_launcher_is_a_sentence() -> None:
    with pytest.raises(SteradError, match=r"unknown launcher 'rey': did you mean 'ray'"):
        parse_with_launcher(Few, ["--launcher", "rey"], "command")


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
    assert vars(parse_with_launcher(Few, words, "command")[1]) == {"speed": 9}


def test_a_study_with_a_sink(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    words = ["study", str(tmp_path / "small.toml"), "--out", str(tmp_path / "runs")]
    assert main([*words, "--sink", "tensorbord"]) == 2
    assert "did you mean 'tensorboard'" in capsys.readouterr().err
    assert main([*words, "--threads", "1", "--sink", "tensorboard"]) == 0
    assert list(tmp_path.glob("runs/*/tensorboard/events.*"))
    assert "finetune" in capsys.readouterr().out
