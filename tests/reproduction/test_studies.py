"""The study files contain exactly the runs of the paper's tables, under its protocol."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.cli.train import parse_train_request
from sterad.experiments.config import RunConfig
from sterad.experiments.study import Study
from sterad_reproduction.numbers import Number, load_numbers
from sterad_reproduction.protocol import find_differences, paper_settings, relevant_settings
from sterad_reproduction.verdicts import train_command

STUDIES = Path(__file__).parents[2] / "studies"


def table_numbers(table: int) -> list[Number]:
    return [n for n in load_numbers() if n.table.number == table and not n.is_quoted]


@pytest.mark.parametrize("table", [1, 2, 3, 4, 5])
def test_a_study_has_all_runs_of_its_table(table: int) -> None:
    numbers = table_numbers(table)
    configs = Study.from_toml(STUDIES / f"{numbers[0].table.study}.toml").configs
    assert len(configs) == len(numbers) * numbers[0].runs
    runs = {(str(sorted(relevant_settings(c.to_dict()).items())), c.settings.seed) for c in configs}
    for number in numbers:
        for seed in range(number.runs):
            settings = paper_settings(number.settings)
            if (str(sorted(settings.items())), seed) not in runs:
                closest = min(
                    (find_differences(relevant_settings(c.to_dict()), settings) for c in configs),
                    key=len,
                )
                texts = ", ".join(difference.text for difference in closest)
                pytest.fail(f"{number.description}: {texts}")


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
def test_the_command_of_a_number_is_a_run_of_its_study(
    number: Callable[..., Number], table: int, settings: dict[str, object]
) -> None:
    found = number(table, **settings)
    configs = Study.from_toml(STUDIES / f"{found.table.study}.toml").configs
    assert parse_command(train_command(found, frozenset(), "runs")) in configs


def parse_command(line: str) -> RunConfig:
    """Return the config of a `sterad train` command for seed 0."""
    words = line.partition("sterad train ")[2].partition(";")[0].replace("$seed", "0").split()
    return parse_train_request(words).config()


@pytest.mark.parametrize(("name", "runs"), [("paper-time", 11), ("paper-loss-ratio", 3)])
def test_runs_of_figures_are_runs_of_paper_clear(name: str, runs: int) -> None:
    clear = set(Study.from_toml(STUDIES / "paper-clear.toml").configs)
    configs = set(Study.from_toml(STUDIES / f"{name}.toml").configs)
    assert configs <= clear
    assert len(configs) == runs


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("paper-concentration", 2 * 11 * 5),
        ("box-cifar100", 6 * 2 * 2),
        ("ablation-directions", 2 * 3 * 2 + 2),
        ("ablation-concentration", 2 * 5 * 2 + 2),
        ("ablation-views", 5 * 4 * 2 + 2),
    ],
)
def test_number_of_runs(name: str, runs: int) -> None:
    assert len(Study.from_toml(STUDIES / f"{name}.toml").configs) == runs
