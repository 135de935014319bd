from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from sterad.errors import SteradError
from sterad.experiments.config import ComponentConfig, RunConfig
from sterad.experiments.search.space import Space, read_space
from sterad.methods import METHODS


def create_method(name: str, **values: Any) -> ComponentConfig:
    return RunConfig.of(method=name, **values).method


def create_space(folder: Path, text: str, name: str = "er", **values: Any) -> Space:
    (folder / "space.toml").write_text(text)
    return read_space(create_method(name, **values), folder / "space.toml")


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
def test_paper_spaces_are_valid_for_their_methods(name: str) -> None:
    space = read_space(create_method(name))
    assert space.size == SIZES[name]
    for point in space.points.values():
        assert space.build_method(point).name == name


def test_paper_lists() -> None:
    lists = {dim.name: dim.values for dim in read_space(create_method("agd-fd")).dimensions}
    assert lists["lr"] == (1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1)
    assert lists["variance"] == (0.05, 0.5, 1, 2, 3, 4, 5, 10)
    others = {dim.name: dim.values for dim in read_space(create_method("derpp")).dimensions}
    assert (others["lr"], others["alpha"]) == ((1e-4, 1e-3, 1e-2, 3e-2), (0.1, 0.2, 0.5, 1))


def test_a_field_that_has_no_effect_is_not_varied(tmp_path: Path) -> None:
    text = """[er]
    optimizer = ["sgd", "adam"]
    momentum = { values = [0.0, 0.5], only = { optimizer = "sgd" } }
    """
    space = create_space(tmp_path, text, momentum=0.7)
    assert space.active_values({"optimizer": "adam", "momentum": 0.0}) == {"optimizer": "adam"}
    assert space.build_method({"optimizer": "adam", "momentum": 0.0}).fields.momentum == 0.7
    assert space.build_method({"optimizer": "sgd", "momentum": 0.5}).fields.momentum == 0.5
    assert space.size == 3
    reduced = create_space(tmp_path, text, optimizer="adam").drop_dimensions(["optimizer"])
    assert reduced.active_values({"momentum": 0.5}) == {}
    assert create_space(tmp_path, text, optimizer="sgd").drop_dimensions(["optimizer"]).size == 2


def test_spellings_of_names_and_duplicate_values(tmp_path: Path) -> None:
    space = create_space(tmp_path, "[ER]\nweight-decay = [0, 1, 0]\n")
    assert [(dim.name, dim.values) for dim in space.dimensions] == [("weight_decay", (0.0, 1.0))]


def test_old_names_of_fields_are_accepted(tmp_path: Path) -> None:
    text = """[er]
    optimiser = ["sgd", "adam"]
    recipe = ["full", "none"]
    momentum = { values = [0.0, 0.5], only = { optimiser = "sgd" } }
    """
    space = create_space(tmp_path, text)
    assert [dim.name for dim in space.dimensions] == ["optimizer", "augmentation", "momentum"]
    assert space.dimensions[2].only == {"optimizer": "sgd"}
    with pytest.raises(SteradError, match="'recipe' is another name of augmentation"):
        create_space(tmp_path, '[er]\naugmentation = ["full"]\nrecipe = ["none"]\n')


def test_a_space_with_ranges_is_infinite(tmp_path: Path) -> None:
    space = create_space(
        tmp_path,
        "[er]\nlr = { low = 1e-4, high = 1, log = true }\nviews = { low = 1, high = 5 }\n"
        'augmentation = ["full"]',
    )
    assert (space.size, space.points, space.ranges) == (float("inf"), {}, ["lr", "views"])
    assert space.distributions() == {
        "lr": FloatDistribution(1e-4, 1, log=True),
        "views": IntDistribution(1, 5),
        "augmentation": CategoricalDistribution(["full"]),
    }


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[er]\nlrr = [1]", "unknown field 'lrr' .*did you mean 'lr'"),
        ("[er]\nvariance = [1]", "unknown field 'variance'"),
        ("[er]\nlr = 0.1", r"lr = 0.1 is neither a list of values nor a range: give \[0.1\]"),
        ("[er]\nlr = []", "lr has an empty list"),
        ('[er]\nlr = ["fast"]', r"lr 'fast' is of type str: give a number in \(0, 1e\+06\]"),
        ("[er]\nlr = [0.1, -1.0]", r"lr -1.0 is out of range: give a number in \(0, 1e\+06\]"),
        ("[er]\nlr = { lo = 1, high = 2 }", "unknown field 'lo' .*did you mean 'low'"),
        ("[er]\nlr = { low = 1 }", "lr has neither values nor low and high"),
        ("[er]\nlr = { low = 2, high = 1 }", "lr from 2.0 to 1.0 is not a range"),
        (
            "[er]\nweight-decay = { low = 0, high = 1, log = true }",
            "is not a range: give 0 < low < high",
        ),
        ('[er]\naugmentation = { low = "a", high = "b" }', "is not a range of numbers"),
        ("[er]\nlr = { values = [1], only = { optimzer = 1 } }", "did you mean 'optimizer'"),
        ("[er]\n", "is not a table of lists"),
        ("er = 3", "is not a table of lists"),
        ("[scr]\nlr = [1]", "no search space for 'er', only for scr: give --space"),
        ("[eer]\nlr = [1]", "unknown method 'eer': did you mean 'er'"),
        ("[er", "is not TOML"),
        ("lr = [1]", r"space.toml' cannot be used, unknown method 'lr'"),
    ],
)
def test_an_invalid_space_is_an_error(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(SteradError, match=error):
        create_space(tmp_path, text)


def test_methods_without_a_paper_space_need_a_file() -> None:
    others = set(METHODS) - set(SIZES)
    assert "ocm" in others
    for name in others:
        with pytest.raises(SteradError, match=f"the paper has no search space for '{name}'"):
            read_space(create_method(name))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match=r"cannot read the space .*no.toml': No such file"):
        read_space(create_method("er"), tmp_path / "no.toml")


def test_a_space_without_dimensions_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="no field of er is left to search"):
        create_space(tmp_path, "[er]\nlr = [1]").drop_dimensions(["lr"])


def test_default_stands_for_the_default_of_a_field(tmp_path: Path) -> None:
    space = create_space(tmp_path, '[er]\nclip = ["default", 1.0]\nviews = ["default", 3, 1]\n')
    assert [dimension.values for dimension in space.dimensions] == [(None, 1.0), (1, 3)]
    assert space.build_method({"clip": None, "views": 3}).fields.clip is None
