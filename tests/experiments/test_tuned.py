"""Tuned values: those of the package, user files, and writing new ones."""

import tomllib
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.experiments.tuned import (
    Tuned,
    read_tuned,
    replace_table,
    tuned_files,
    tuned_values,
    write_tuned,
)
from sterad.methods import METHODS, Replay

RELEASED = ("agd-fd", "vmf-fd", "scr", "er", "er-ace", "derpp", "agem", "dvc", "ocm", "gdumb")


@pytest.fixture(autouse=True)
def _empty_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_file(text: str, name: str = "custom") -> None:
    folder = Path("studies") / "best"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text)


def test_every_replay_method_has_values_for_every_dataset_of_the_paper() -> None:
    assert {"cifar10", "cifar100", "tiny-imagenet", "digits"} <= set(tuned_files())
    methods = {
        name
        for name in METHODS
        if issubclass(METHODS[name], Replay)
        and METHODS.qualified_name(name).startswith("sterad.methods.")
    }
    assert methods >= set(RELEASED)
    for name in ("cifar10", "cifar100", "tiny-imagenet"):
        tuned = read_tuned(name)
        assert set(tuned) == methods | {"randumb"}, "the control is in every table"
        released = set(RELEASED) - {"dvc"}  # whose learning rate needs logits of unit length
        assert all(tuned[method].source.startswith("released") for method in released)
        assert all("our choice" in tuned[m].source for m in methods if m not in released)


def test_released_values_have_the_logits_that_they_were_found_with() -> None:
    for name, method in [(n, m) for n in ("cifar10", "cifar100") for m in ("agem", "dvc", "gdumb")]:
        assert not METHODS[method].Config(**tuned_values(name, method)).unit_logits
    released = {method: tuned_values("cifar100-released", method) for method in RELEASED}
    unit = {method for method, values in released.items() if values.get("unit_logits")}
    assert unit == {"agem", "dvc", "gdumb"}
    raw = METHODS["dvc"].Config(**tuned_values("cifar10", "dvc"))
    assert (raw.lr, raw.momentum, raw.consistency) == (0.01, 0.0, 2.0)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "tiny-imagenet", "cifar100-released"])
def test_values_of_the_released_code(name: str) -> None:
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
        "dvc": ("sgd", 0.1, 0.9, 0, "full", {"consistency": 4.0}),
        "ocm": ("adam", 1e-3, None, 1e-4, "full", {"beta2": 0.99, "projection": 128}),
        "gdumb": ("sgd", 0.05, 0.9, 1e-6, "partial", {"clip": 10.0, "epochs": 30}),
    }
    assert set(released) == set(RELEASED)
    if name != "cifar100-released":
        del released["dvc"]
    for method, (optimizer, lr, momentum, decay, augmentation, other) in released.items():
        config = METHODS[method].Config(**tuned_values(name, method))
        assert (config.optimizer, config.lr, config.weight_decay) == (optimizer, lr, decay), method
        assert config.augmentation == augmentation, method
        assert momentum is None or config.momentum == momentum, method  # Adam has none
        assert {field: getattr(config, field) for field in other} == other, method
    assert tuned_values(name, "vMF_FD") == tuned_values(name, "vmf-fd")


def test_a_file_in_the_working_folder_overrides_the_shipped_one_and_may_extend_another() -> None:
    write_file('like = "cifar10"\n[er]\nsource = "me"\nlr = 0.5', "digits")
    assert tuned_values("digits", "er") == {"lr": 0.5}
    assert tuned_values("digits", "dvc")["consistency"] == 2.0
    assert tuned_values("studies/best/digits.toml", "er") == {"lr": 0.5}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            '[er]\nsource = "me"\nlearning = 1',
            "in .er. of .*custom.toml': unknown field 'learning'",
        ),
        ('[er]\nsource = "me"\nmomentm = 1', "did you mean 'momentum'"),
        (
            '[er]\nsource = "me"\nlr = "x"',
            "in .er. of .*custom.toml': lr 'x' is of type str: give a number in ",
        ),
        ("[er]\nlr = 0.1", "has no source: give a text"),
        ('[err]\nsource = "me"', "unknown method 'err'"),
        ("er = 1", "er = 1 in .*custom.toml. is not the table of a method"),
        ('like = "missing"', "unknown tuned values 'missing': known are .*cifar100"),
        ('like = "custom"', "refer to each other in a circle: custom -> custom"),
        ("like = 3", "custom.toml. cannot be used, like 3 is of type int: give text"),
        ("[er", "is not TOML"),
        ("like = " + "9" * 5000, "is not TOML"),
        ("like = 0x" + "f" * 5000, "an integer of 20000 bits, more than 64"),
        ("like = " + "[" * 5000, "is not TOML"),
        ("[like]", "like {} is of type dict"),
        ("", "'custom' has no tuned values for 'er'"),
    ],
)
def test_an_invalid_file_is_an_error(text: str, error: str) -> None:
    write_file(text)
    with pytest.raises(SteradError, match=error):
        tuned_values("custom", "er")


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(SteradError, match=r"cannot read .* 'no.toml': No such file"):
        tuned_values("no.toml", "er")


def test_old_names_of_fields_are_accepted() -> None:
    write_file('[er]\nsource = "me"\nrecipe = "none"\nweight-decay = 0.5')
    assert tuned_values("custom", "er") == {"augmentation": "none", "weight_decay": 0.5}


TABLES = """\
# of the whole file
like = "other"

[er]  # of er
source = "released"
lr = 0.1

# of er-ace
["er_ace"]
source = "chosen"  # of the source
lr = 0.2
"""


def test_replacing_a_table_keeps_other_tables_and_comments() -> None:
    replaced = replace_table(TABLES, "er", {"source": "new", "lr": 0.5, "clip": None})
    assert replaced == TABLES.replace(
        '[er]  # of er\nsource = "released"\nlr = 0.1', '[er]\nsource = "new"\nlr = 0.5'
    )
    last = replace_table(TABLES, "er-ace", {"source": "new"})
    assert last == TABLES[: TABLES.index('["er_ace"]')] + '[er-ace]\nsource = "new"\n'
    appended = replace_table(TABLES, "scr", {"source": "new"})
    assert appended == TABLES + '\n[scr]\nsource = "new"\n'
    assert replace_table("", "scr", {"lr": 1.0}) == "[scr]\nlr = 1.0\n"


def test_a_table_that_cannot_be_found_by_its_header_is_not_replaced() -> None:
    inline = 'er = { source = "a" }\n[scr]\nsource = "b"\n'
    with pytest.raises((SteradError, tomllib.TOMLDecodeError)):
        replace_table(inline, "er", {"source": "c"})
    in_a_string = '[scr]\nsource = """\n[er]\n"""\nlr = 1\n'
    with pytest.raises((SteradError, tomllib.TOMLDecodeError)):
        replace_table(in_a_string, "er", {"source": "c"})


def test_written_values_are_read_again() -> None:
    file = Path("new", "custom.toml")
    values = {"lr": 1e-05, "augmentation": "full", "views": 2}
    assert write_tuned(file, "er", Tuned('a "quoted" source', values)) is None
    assert write_tuned(file, "er", Tuned("later", values)) == 'a "quoted" source'
    assert read_tuned(str(file))["er"] == Tuned("later", values)
    names = sorted(file.name for file in file.parent.iterdir())
    assert names == [".custom.toml.lock", "custom.toml"]


def test_a_new_file_does_not_change_the_shipped_file_of_the_same_name() -> None:
    shipped = tuned_files()["cifar100"]
    before, file = shipped.read_bytes(), Path("found", "cifar100.toml")
    assert write_tuned(file, "er", Tuned("custom", {"lr": 0.5})) is None
    assert tomllib.loads(file.read_text()) == {"er": {"source": "custom", "lr": 0.5}}
    assert tuned_files()["cifar100"] == shipped
    assert shipped.read_bytes() == before


def test_an_invalid_file_is_left_unchanged_and_a_wrong_folder_is_an_error() -> None:
    file = Path("x.toml")
    file.write_text("[er")
    error = r"are not TOML .* left unchanged: fix the file, or choose another with --save-tuned"
    with pytest.raises(SteradError, match=error):
        write_tuned(file, "er", Tuned("s", {}))
    assert file.read_text() == "[er"
    for text in ("[er]\nlr = " + "9" * 5000, "x = " + "[" * 5000, "er = 3\n"):
        file.write_text(text)
        with pytest.raises(SteradError, match="--save-tuned"):
            write_tuned(file, "er", Tuned("s", {}))
        assert file.read_text() == text
    error = r"cannot write .*: (Not a directory|File exists)\. .* another file with --save-tuned"
    with pytest.raises(SteradError, match=error):
        write_tuned(file / "y.toml", "er", Tuned("s", {}))
