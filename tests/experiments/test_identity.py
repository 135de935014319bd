"""What a run depends on is in its id: other data or other code make another run, and it is said."""

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
from sterad.experiments.config import earlier_versions
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

@METHODS.register("mine")
class Mine(ER):
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
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for registry in (METHODS, DATASETS):  # what a test registers is gone after it
        monkeypatch.setattr(registry, "_components", dict(registry._components))


def pixels(seed: int, count: int = 16) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, 8, 8), dtype=np.uint8)


def write_npz(seed: int) -> None:
    labels = np.arange(16) % 2
    x = pixels(seed)
    np.savez("own.npz", train_images=x, train_labels=labels, test_images=x, test_labels=labels)


def write_folder(seed: int) -> None:
    for at, image in enumerate(pixels(seed)):
        place = Path("imgs") / "ab"[at % 2] / f"{at}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place)


def write_one_image(seed: int) -> None:
    """Overwrite one image in place: neither its folder's time nor its size need change."""
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
    Path("mine.py").write_text(PLUGIN.format(word=f"Number {seed}."))


def write_squares(seed: int) -> None:
    write_plugin(0)
    np.save("squares.npy", pixels(seed, 8))


@pytest.mark.parametrize(
    ("write", "words", "what"),
    [
        (write_npz, "er --dataset npz --npz-file own.npz", "data"),
        (write_folder, "er --dataset folder --folder imgs --root .", "data"),
        (write_one_image, "er --dataset folder --folder imgs --root .", "data"),
        (write_plugin, "mine --plugin mine.py --dataset synthetic --per-class 4", "method code"),
        (write_squares, "er --plugin mine.py --dataset squares", "data"),
    ],
)
def test_changed_data_or_code_is_run_again(
    write: Callable[[int], None], words: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = []
    for seed in (0, 0, 1, 0):
        write(seed)
        assert main(["train", *words.split(), *SMALL]) == 0
        said = capsys.readouterr()
        ids.append(said.out.split()[0])
        finished = "(finished before)" in said.out.splitlines()[0]
        assert finished == (ids.count(ids[-1]) > 1)
        told = f"{ids[0]} had different {what}: this is a new run" in said.err
        assert told == (ids[-1] != ids[0])
    assert ids[0] == ids[1] == ids[3] != ids[2]
    config = json.loads((Path("runs") / ids[0] / "config.json").read_text())["config"]
    assert what in config["digests"]


def test_runs_of_the_package_alone_keep_the_id_that_they_had() -> None:
    assert RunConfig.of().id == "agd-fd-digits-clear-s0-1eff0ef119"
    assert "digests" not in RunConfig.of().to_dict()


def test_the_record_says_which_data_it_is_about(tmp_path: Path) -> None:
    config = RunConfig.of(method="finetune", dataset="synthetic", per_class=4, width=2)
    record = run(config, tmp_path / "runs", Execution(threads=1))
    assert record.data_digest == config.dataset.fields.load().digest
    assert len(record.data_digest) == 16


def test_a_job_that_is_sent_elsewhere_finds_the_same_data_there() -> None:
    write_npz(0)
    config = RunConfig.of(method="er", dataset="npz", npz_file="own.npz")
    plain = config.to_dict(places=True)
    assert RunConfig.from_dict(plain) == config
    write_npz(1)
    with pytest.raises(SteradError, match=r"the data differ from those .* bring the same"):
        RunConfig.from_dict(plain)
    with pytest.raises(SteradError, match="changed while the run was prepared"):
        run(config, "runs", Execution(threads=1))
    assert earlier_versions(config, Path("runs")) == []


def test_equal_contents_have_equal_digests_however_they_are_stored() -> None:
    write_npz(0)
    stored = RunConfig.of(dataset="npz", npz_file="own.npz").dataset.fields.load()
    labels = np.arange(16) % 2
    plain = Dataset.from_arrays(pixels(0), labels, pixels(0), labels)
    assert stored.digest == plain.digest
    other = Dataset.from_arrays(pixels(0), 1 - labels, pixels(0), labels)
    named = Dataset.from_arrays(pixels(0), labels, pixels(0), labels, class_names=["a", "b"])
    assert len({plain.digest, other.digest, named.digest}) == 3


def test_a_relative_root_notices_changes_too() -> None:
    """Sources were looked up twice below a relative root, so that nothing was ever stale."""
    Path("data").mkdir()
    os.chdir("data")
    write_npz(0)
    os.chdir("..")
    first = RunConfig.of(dataset="npz", npz_file="own.npz")
    os.chdir("data")
    write_npz(1)
    os.chdir("..")
    assert RunConfig.of(dataset="npz", npz_file="own.npz").id != first.id


def test_an_edited_plugin_is_loaded_again_in_the_same_process() -> None:
    write_plugin(0)
    load_plugin("mine.py")
    first = RunConfig.of(method="mine", dataset="synthetic")
    write_plugin(5)
    assert RunConfig.of(method="mine", dataset="synthetic") == first, "the code that is loaded"
    load_plugin("mine.py")
    second = RunConfig.of(method="mine", dataset="synthetic")
    assert second.id != first.id


def test_the_spelling_of_a_path_does_not_matter(tmp_path: Path) -> None:
    write_folder(0)
    spellings = ("imgs", "imgs/", "./imgs", str(tmp_path / "imgs"))
    ids = {RunConfig.of(method="er", dataset="folder", folder=one).id for one in spellings}
    assert len(ids) == 1


def test_folders_of_one_name_in_two_places_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one root for both, the cache must not take the one for the other."""
    monkeypatch.setenv("STERAD_DATA", str(tmp_path / "root"))
    (tmp_path / "root").mkdir()
    digests = []
    for seed, name in enumerate(("here", "there")):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        write_folder(seed)
        digests.append(RunConfig.of(method="er", dataset="folder", folder="imgs").digests)
    assert digests[0] != digests[1]


def test_an_image_with_its_old_size_and_time_is_noticed() -> None:
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
