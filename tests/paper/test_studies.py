"""The studies run the paper's tables: each run has the protocol of its number, and none is left."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.cli.components import parse_request
from sterad.cli.train import OutputOptions
from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig, RunSettings
from sterad.experiments.study import Study
from sterad.paper.commands import train_command
from sterad.paper.numbers import Number, numbers
from sterad.paper.protocol import differences, essential, expected

STUDIES = Path(__file__).parents[2] / "studies"


def runnable(table: int) -> list[Number]:
    return [n for n in numbers() if n.table.number == table and not n.quoted]


@pytest.mark.parametrize("table", [1, 2, 3, 4, 5])
def test_a_study_is_its_table(table: int) -> None:
    wanted = runnable(table)
    made = Study.from_toml(STUDIES / f"{wanted[0].table.study}.toml").configs
    assert len(made) == len(wanted) * wanted[0].runs
    found = {(str(sorted(essential(c.to_dict()).items())), c.settings.seed) for c in made}
    for number in wanted:
        for seed in range(number.runs):
            settings = sorted(expected(number.settings).items())
            if (str(settings), seed) not in found:
                near = min(
                    (differences(essential(c.to_dict()), dict(settings)) for c in made), key=len
                )
                pytest.fail(f"{number.where}: {', '.join(one.text for one in near)}")


@pytest.mark.parametrize(
    ("table", "settings"),
    [
        (1, {"method": "pfc", "dataset": "tiny-imagenet", "memory": 2000}),
        (2, {"method": "dvc", "dataset": "cifar10", "memory": 500}),
        (3, {"directions": "moving", "memory_batch": 16}),
        (4, {"method": "er-ace", "views": 9}),
        (5, {"method": "scr", "memory": 1000}),
    ],
)
def test_the_command_of_a_number_makes_a_run_of_the_study(
    number: Callable[..., Number], table: int, settings: dict[str, object]
) -> None:
    one = number(table, **settings)
    made = Study.from_toml(STUDIES / f"{one.table.study}.toml").configs
    assert _config(train_command(one, frozenset(), "runs")) in made


def _config(line: str) -> RunConfig:
    """Read a command as `sterad train` does, for its first seed."""
    words = line.partition("sterad train ")[2].partition(";")[0].replace("$seed", "0").split()
    own = {"Run": (RunSettings, OutputOptions), "Execution": (Execution,)}
    return parse_request(words, "sterad train", "", "method", ("dataset", "stream"), own).config()


@pytest.mark.parametrize(("name", "runs"), [("paper-time", 11), ("paper-loss-ratio", 3)])
def test_what_paper_clear_runs_too_is_not_run_twice(name: str, runs: int) -> None:
    clear = set(Study.from_toml(STUDIES / "paper-clear.toml").configs)
    made = set(Study.from_toml(STUDIES / f"{name}.toml").configs)
    assert made <= clear
    assert len(made) == runs


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("paper-concentration", 2 * 11 * 5),
        ("box-cifar100", 5 * 2 * 2),
        ("ablation-directions", 2 * 3 * 2),
        ("ablation-concentration", 2 * 5 * 2),
        ("ablation-views", 5 * 4 * 2),
    ],
)
def test_sizes(name: str, runs: int) -> None:
    assert len(Study.from_toml(STUDIES / f"{name}.toml").configs) == runs
