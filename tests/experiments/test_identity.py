"""The id of a run depends on its data and code: a change of either starts a new run."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from sterad import RunConfig
from sterad.cli import main
from sterad.data import DATASETS, Dataset
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.resume import describe_earlier_versions
from sterad.experiments.run import run
from sterad.methods import METHODS
from sterad.plugins import load_plugin
from sterad.sphere import LAWS

SMALL = ["--memory", "4", "--width", "2", "--threads", "1"]
PLUGIN = """
import numpy as np
import numpy.typing as npt
from dataclasses import dataclass
from sterad.data import DATASETS, Dataset, Defaults
from sterad.methods import METHODS
from sterad.methods.er import ER

@METHODS.register("custom")
class Custom(ER):
    "{word}"

@DATASETS.register("squares")
@dataclass(frozen=True)
class Squares:
    "Squares."
    def load(self):
        images = np.load("squares.npy")
        labels = np.arange(len(images)) % 2
        return Dataset.from_arrays(images, labels, images, labels)
    def defaults(self):
        return Defaults.for_counts(2, 8, width=2)
"""


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for registry in (METHODS, DATASETS):  # undo the registrations of a test
        monkeypatch.setattr(registry, "_components", dict(registry._components))


def pixels(seed: int, count: int = 16) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, 8, 8), dtype=np.uint8)


def write_npz(seed: int) -> None:
    labels = np.arange(16) % 2
    x = pixels(seed)
    np.savez("own.npz", train_images=x, train_labels=labels, test_images=x, test_labels=labels)


def write_folder(seed: int) -> None:
    for index, image in enumerate(pixels(seed)):
        file = Path("imgs") / "ab"[index % 2] / f"{index}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)


def write_one_image(seed: int) -> None:
    """Overwrite one image in place; the modification time of its folder stays the same."""
    write_folder(0)
    if seed:
        file = Path("imgs") / "a" / "0.png"
        before = file.stat()
        with open(file, "r+b") as opened:
            Image.fromarray(pixels(0)[2]).save(opened, "PNG")
        os.utime(file.parent, ns=(0, 0))
        assert file.stat().st_ino == before.st_ino


def write_plugin(seed: int) -> None:
    np.save("squares.npy", pixels(0, 8))
    Path("plugin.py").write_text(PLUGIN.format(word=f"Number {seed}."))


def write_squares(seed: int) -> None:
    write_plugin(0)
    np.save("squares.npy", pixels(seed, 8))


@pytest.mark.parametrize(
    ("write", "arguments", "changed"),
    [
        (write_npz, "er --dataset npz --npz-file own.npz", "data"),
        (write_folder, "er --dataset folder --folder imgs --root .", "data"),
        (write_one_image, "er --dataset folder --folder imgs --root .", "data"),
        (
            write_plugin,
            "custom --plugin plugin.py --dataset synthetic --per-class 4",
            "method code",
        ),
        (write_squares, "er --plugin plugin.py --dataset squares", "data"),
    ],
)
def test_changed_data_or_code_start_a_new_run(
    write: Callable[[int], None], arguments: str, changed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = []
    for seed in (0, 0, 1, 0):
        write(seed)
        assert main(["train", *arguments.split(), *SMALL]) == 0
        printed = capsys.readouterr()
        ids.append(printed.out.split()[0])
        finished = "(finished before)" in printed.out.splitlines()[0]
        assert finished == (ids.count(ids[-1]) > 1)
        is_new = f"{ids[0]} had different {changed}: this is a new run" in printed.err
        assert is_new == (ids[-1] != ids[0])
    assert ids[0] == ids[1] == ids[3] != ids[2]
    config = json.loads((Path("runs") / ids[0] / "config.json").read_text())["config"]
    assert changed in config["digests"]


def test_ids_of_runs_without_user_code_and_data_never_change() -> None:
    assert RunConfig.of().id == "agd-fd-digits-clear-s0-1eff0ef119"
    assert "digests" not in RunConfig.of().to_dict()


def test_the_record_has_the_digest_of_the_data(tmp_path: Path) -> None:
    config = RunConfig.of(method="finetune", dataset="synthetic", per_class=4, width=2)
    record = run(config, tmp_path / "runs", Execution(threads=1))
    assert record.data_digest == config.dataset.fields.load().digest
    assert len(record.data_digest) == 16


def test_other_data_on_another_machine_raise() -> None:
    write_npz(0)
    config = RunConfig.of(method="er", dataset="npz", npz_file="own.npz")
    values = config.to_dict(with_paths=True)
    assert RunConfig.from_dict(values) == config
    write_npz(1)
    with pytest.raises(SteradError, match=r"the data differ from those .* bring the same"):
        RunConfig.from_dict(values)
    with pytest.raises(SteradError, match="changed while the run was prepared"):
        run(config, "runs", Execution(threads=1))
    assert describe_earlier_versions(config, Path("runs")) == []


def test_the_digest_depends_on_the_contents_and_not_on_the_format() -> None:
    write_npz(0)
    stored = RunConfig.of(dataset="npz", npz_file="own.npz").dataset.fields.load()
    labels = np.arange(16) % 2
    plain = Dataset.from_arrays(pixels(0), labels, pixels(0), labels)
    assert stored.digest == plain.digest
    other = Dataset.from_arrays(pixels(0), 1 - labels, pixels(0), labels)
    named = Dataset.from_arrays(pixels(0), labels, pixels(0), labels, class_names=["a", "b"])
    assert len({plain.digest, other.digest, named.digest}) == 3


def test_changes_are_found_below_a_relative_root() -> None:
    """Sources must not be looked up twice below the root, where they would seem unchanged."""
    Path("data").mkdir()
    os.chdir("data")
    write_npz(0)
    os.chdir("..")
    first = RunConfig.of(dataset="npz", npz_file="own.npz")
    os.chdir("data")
    write_npz(1)
    os.chdir("..")
    assert RunConfig.of(dataset="npz", npz_file="own.npz").id != first.id


def test_an_edited_plugin_can_be_loaded_again_in_the_same_process() -> None:
    write_plugin(0)
    load_plugin("plugin.py")
    first = RunConfig.of(method="custom", dataset="synthetic")
    write_plugin(5)
    assert RunConfig.of(method="custom", dataset="synthetic") == first, (
        "the loaded code counts, not the file"
    )
    load_plugin("plugin.py")
    second = RunConfig.of(method="custom", dataset="synthetic")
    assert second.id != first.id


def test_the_spelling_of_a_path_does_not_matter(tmp_path: Path) -> None:
    write_folder(0)
    spellings = ("imgs", "imgs/", "./imgs", str(tmp_path / "imgs"))
    ids = {RunConfig.of(method="er", dataset="folder", folder=path).id for path in spellings}
    assert len(ids) == 1


def test_folders_of_equal_name_have_their_own_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache, which both share, must not confuse them."""
    monkeypatch.setenv("STERAD_DATA", str(tmp_path / "root"))
    (tmp_path / "root").mkdir()
    digests = []
    for seed, name in enumerate(("here", "there")):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        write_folder(seed)
        digests.append(RunConfig.of(method="er", dataset="folder", folder="imgs").digests)
    assert digests[0] != digests[1]


def test_a_change_that_keeps_size_and_modification_time_is_found() -> None:
    write_npz(0)
    before, status = RunConfig.of(dataset="npz", npz_file="own.npz"), os.stat("own.npz")
    write_npz(1)
    os.utime("own.npz", ns=(status.st_atime_ns, status.st_mtime_ns))
    after = RunConfig.of(dataset="npz", npz_file="own.npz")
    assert os.stat("own.npz").st_size == status.st_size
    assert after.id != before.id


LAW = """
import torch
from sterad.sphere import LAWS, PowerSpherical

@LAWS.register("own-law")
class OwnLaw(PowerSpherical):
    @staticmethod
    def concentration_of(variance: float) -> float:
        return {factor} / variance
"""


def test_the_code_of_a_users_law_is_part_of_the_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LAWS, "_components", dict(LAWS._components))
    ids = []
    for factor in (2, 3):
        file = tmp_path / "law.py"
        file.write_text(LAW.format(factor=factor))
        load_plugin(file)
        ids.append(RunConfig.of(law="own-law").id)
    assert len(set(ids)) == 2
    assert RunConfig.of(law="power-spherical").digests == ()


def test_aliases_of_a_component_give_the_same_id() -> None:
    names = ("angular-gaussian", "agd", "Angular_Gaussian")
    assert {RunConfig.of(law=name).id for name in names} == {RunConfig.of().id}
    assert RunConfig.of(augmentation="FULL").id == RunConfig.of().id


@pytest.mark.parametrize("digests", ['"abc"', "[1, 2]", "3", "null", '{"data": 3}', "[" * 100_000])
def test_an_odd_config_of_another_run_is_skipped(tmp_path: Path, digests: str) -> None:
    config = RunConfig.of(method="er", dataset="digits")
    folder = tmp_path / f"{config.id.rpartition('-')[0]}-other"
    folder.mkdir()
    text = f'{{"config": {{"seed": 0, "digests": {digests}}}, "execution": {{}}}}'
    (folder / "config.json").write_text(text)
    assert describe_earlier_versions(config, tmp_path) == []
