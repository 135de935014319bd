from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from sterad.errors import SteradError
from sterad.experiments.config import ComponentConfig, RunConfig
from sterad.experiments.search.space import Space, read_space
from sterad.methods import METHODS


def method(name: str, **values: Any) -> ComponentConfig:
    return RunConfig.of(method=name, **values).method


def space(folder: Path, text: str, name: str = "er", **values: Any) -> Space:
    (folder / "space.toml").write_text(text)
    return read_space(method(name, **values), folder / "space.toml")


# Two optimizers with two momenta would be 64 points of ER, but Adam has none to vary.
SIZES = {
    "agd-fd": 672,
    "vmf-fd": 192,
    "er": 48,
    "er-ace": 48,
    "agem": 48,
    "dvc": 48,
    "scr": 48,
    "derpp": 384,
    "pfc": 84,
    "gdumb": 2,
}


@pytest.mark.parametrize("name", list(SIZES))
def test_the_papers_spaces_fit_their_methods(name: str) -> None:
    made = read_space(method(name))
    assert made.size == SIZES[name]
    for point in made.points.values():
        assert made.at(point).name == name


def test_the_papers_lists(tmp_path: Path) -> None:
    lists = {one.name: one.values for one in read_space(method("agd-fd")).dimensions}
    assert lists["lr"] == (1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1)
    assert lists["variance"] == (0.05, 0.5, 1, 2, 3, 4, 5, 10)
    others = {one.name: one.values for one in read_space(method("derpp")).dimensions}
    assert (others["lr"], others["alpha"]) == ((1e-4, 1e-3, 1e-2, 3e-2), (0.1, 0.2, 0.5, 1))


def test_what_means_nothing_is_not_varied_and_stays_as_given(tmp_path: Path) -> None:
    text = """[er]
    optimizer = ["sgd", "adam"]
    momentum = { values = [0.0, 0.5], only = { optimizer = "sgd" } }
    """
    made = space(tmp_path, text, momentum=0.7)
    assert made.values({"optimizer": "adam", "momentum": 0.0}) == {"optimizer": "adam"}
    assert made.at({"optimizer": "adam", "momentum": 0.0}).fields.momentum == 0.7
    assert made.at({"optimizer": "sgd", "momentum": 0.5}).fields.momentum == 0.5
    assert made.size == 3
    settled = space(tmp_path, text, optimizer="adam").without(["optimizer"])
    assert settled.values({"momentum": 0.5}) == {}
    assert space(tmp_path, text, optimizer="sgd").without(["optimizer"]).size == 2


def test_names_and_numbers_as_users_write_them(tmp_path: Path) -> None:
    made = space(tmp_path, "[ER]\nweight-decay = [0, 1, 0]\n")
    assert [(one.name, one.values) for one in made.dimensions] == [("weight_decay", (0.0, 1.0))]


def test_ranges_have_no_end_of_points(tmp_path: Path) -> None:
    made = space(
        tmp_path,
        "[er]\nlr = { low = 1e-4, high = 1, log = true }\nviews = { low = 1, high = 5 }\n"
        'augmentation = ["full"]',
    )
    assert (made.size, made.points, made.ranges) == (float("inf"), {}, ["lr", "views"])
    assert made.distributions() == {
        "lr": FloatDistribution(1e-4, 1, log=True),
        "views": IntDistribution(1, 5),
        "augmentation": CategoricalDistribution(["full"]),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[er]\nlrr = [1]", "unknown field 'lrr' .*did you mean 'lr'"),
        ("[er]\nvariance = [1]", "unknown field 'variance'"),
        ("[er]\nlr = 0.1", r"lr = 0.1 is neither a list of values nor a range: give \[0.1\]"),
        ("[er]\nlr = []", "lr has an empty list"),
        ('[er]\nlr = ["fast"]', r"lr 'fast' is of type str: give a number in \(0, 1e\+06\]"),
        ("[er]\nlr = [0.1, -1.0]", r"lr -1.0 is out of range: give a number in \(0, 1e\+06\]"),
        ("[er]\nlr = { lo = 1, high = 2 }", "unknown field 'lo' .*did you mean 'low'"),
        ("[er]\nlr = { low = 1 }", "lr has neither values nor low and high"),
        ("[er]\nlr = { low = 2, high = 1 }", "lr from 2.0 to 1.0 is no range"),
        ("[er]\nweight-decay = { low = 0, high = 1, log = true }", "must be above 0 and rising"),
        ('[er]\naugmentation = { low = "a", high = "b" }', "no range of numbers"),
        ("[er]\nlr = { values = [1], only = { optimzer = 1 } }", "did you mean 'optimizer'"),
        ("[er]\n", "is no table of lists"),
        ("er = 3", "is no table of lists"),
        ("[scr]\nlr = [1]", "no search space for 'er', only for scr: give --space"),
        ("[eer]\nlr = [1]", "unknown method 'eer': did you mean 'er'"),
        ("[er", "is not TOML"),
    ],
)
def test_a_wrong_space_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SteradError, match=said):
        space(tmp_path, text)


def test_methods_that_the_paper_did_not_search_ask_for_a_space() -> None:
    without = set(METHODS) - set(SIZES)
    assert "ocm" in without
    for name in without:
        with pytest.raises(SteradError, match=f"the paper gives no search space for '{name}'"):
            read_space(method(name))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match=r"cannot read the space .*no.toml': No such file"):
        read_space(method("er"), tmp_path / "no.toml")


def test_nothing_left_to_search(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="nothing of er is left to search"):
        space(tmp_path, "[er]\nlr = [1]").without(["lr"])
