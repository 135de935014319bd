from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.experiments.tuned import read_tuned, tuned_files, tuned_values
from sterad.methods import METHODS

RELEASED = ("agd-fd", "vmf-fd", "scr", "er", "er-ace", "derpp", "agem", "dvc", "ocm", "gdumb")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str, name: str = "mine") -> str:
    folder = Path("studies") / "best"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text)
    return name


def test_every_method_has_values_on_every_dataset_of_the_paper() -> None:
    assert {"cifar10", "cifar100", "tiny-imagenet", "digits"} <= set(tuned_files())
    ours = {name for name in METHODS if METHODS.qualified_name(name).startswith("sterad.methods.")}
    assert ours >= set(RELEASED)
    for name in ("cifar10", "cifar100", "tiny-imagenet"):
        found = read_tuned(name)
        assert set(found) == ours
        assert all(found[method].source.startswith("released") for method in RELEASED)
        assert all("our choice" in found[m].source for m in ours if m not in RELEASED)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "tiny-imagenet"])
def test_the_released_values(name: str) -> None:
    weight = 2.0 if name == "cifar10" else 4.0
    released: dict[str, tuple[str, float, float | None, float, str, dict[str, float]]] = {
        "agd-fd": ("adam", 5e-4, None, 0, "full", {"variance": 2, "projection": 512, "views": 5}),
        "vmf-fd": (
            "adam",
            5e-4,
            None,
            0,
            "full",
            {"variance": 0.14, "projection": 512, "views": 5},
        ),
        "scr": ("sgd", 0.01, 0.9, 1e-4, "full", {"temperature": 0.07, "projection": 128}),
        "er": ("sgd", 0.01, 0.9, 1e-4, "full", {}),
        "er-ace": ("sgd", 0.001, 0.9, 0, "partial", {}),
        "derpp": ("sgd", 0.03, 0, 0, "partial", {"alpha": 0.2, "beta": 1.0}),
        "agem": ("sgd", 0.1, 0, 1e-4, "full", {}),
        "dvc": ("sgd", 0.1, 0.9, 0, "full", {"consistency": weight}),
        "ocm": ("adam", 1e-3, None, 1e-4, "full", {"beta2": 0.99, "projection": 128}),
        "gdumb": ("sgd", 0.05, 0.9, 1e-6, "partial", {"clip": 10.0, "epochs": 30}),
    }
    assert set(released) == set(RELEASED)
    for method, (optimizer, lr, momentum, decay, augmentation, other) in released.items():
        config = METHODS[method].Config(**tuned_values(name, method))
        assert (config.optimizer, config.lr, config.weight_decay) == (optimizer, lr, decay), method
        assert config.augmentation == augmentation, method
        assert momentum is None or config.momentum == momentum, method  # Adam has its own
        assert {field: getattr(config, field) for field in other} == other, method
    assert tuned_values(name, "vMF_FD") == tuned_values(name, "vmf-fd")


def test_a_file_of_the_working_folder_hides_ours_and_may_be_like_another() -> None:
    written('like = "cifar10"\n[er]\nsource = "me"\nlr = 0.5', "digits")
    assert tuned_values("digits", "er") == {"lr": 0.5}
    assert tuned_values("digits", "dvc")["consistency"] == 2.0
    assert tuned_values("studies/best/digits.toml", "er") == {"lr": 0.5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[er]\nsource = "me"\nlearning = 1', "unknown field 'learning' in .er. of .*mine.toml"),
        ('[er]\nsource = "me"\nmomentm = 1', "did you mean 'momentum'"),
        (
            '[er]\nsource = "me"\nlr = "x"',
            "in .er. of .*mine.toml': lr 'x' is of type str: give a number in ",
        ),
        ("[er]\nlr = 0.1", "has no source: say where its values are from"),
        ('[err]\nsource = "me"', "unknown method 'err'"),
        ("er = 1", "er = 1 in .*mine.toml. is not the table of a method"),
        ('like = "nobody"', "no tuned values are called 'nobody': known are .*cifar100"),
        ('like = "mine"', "like each other in a ring"),
        ("like = 3", "^like 3 is of type int: give text$"),
        ("[er", "is not TOML"),
        ("", "'mine' has no tuned values for 'er'"),
    ],
)
def test_a_wrong_file_is_refused_in_words(text: str, said: str) -> None:
    written(text)
    with pytest.raises(SteradError, match=said):
        tuned_values("mine", "er")


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(SteradError, match=r"cannot read .* 'no.toml': No such file"):
        tuned_values("no.toml", "er")
