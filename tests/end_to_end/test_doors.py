"""The first things that a newcomer tries: commands without arguments, own files, wrong files."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sterad import OnlineClassifier, Study
from sterad.cli import COMMANDS, main
from sterad.data.folder import Folder
from sterad.errors import SteradError
from sterad.experiments.launchers import Job


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STERAD_DATA", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("list", 0, "agd-fd"),
        ("data", 0, "sterad data get"),
        ("study", 2, "sterad study needs a FILE"),
        ("search", 2, "sterad search needs a METHOD: one of agd-fd"),
        ("stream", 0, "clear (tasks 5, seed 0): 1,442 images"),
        ("report", 2, "'runs' is not a folder of runs"),
        ("verify", 2, "'runs' is not a folder of runs"),
    ],
)
def test_every_command_without_arguments_works_or_says_what_it_needs(
    command: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command]) == code
    told = capsys.readouterr()
    assert said in told.out + told.err


def test_train_without_arguments_learns_digits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(job: Job, _: object) -> None:  # it would learn for a minute
        raise SteradError(f"{job.id} is started")

    monkeypatch.setattr(Job, "run", started)
    assert main(["train"]) == 2
    assert "agd-fd-digits-clear-s0-1eff0ef119 is started" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: sterad") or command == "data"
    for cryptic in ("{None}", "of-method", "of_method", "own options", "Traceback"):
        assert cryptic not in shown


@pytest.mark.parametrize(
    ("kind", "there", "not_there"),
    [("methods", "agd-fd", "von-mises-fisher"), ("law", "von-mises-fisher", "agd-fd")],
)
def test_a_kind_is_listed_alone(
    kind: str, there: str, not_there: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", kind]) == 0
    shown = capsys.readouterr().out
    assert there in shown
    assert not_there not in shown


def test_the_method_may_stand_behind_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--per-class", "4", "--test-per-class", "2", "--width", "2", "--threads", "1"]
    assert main(["train", "--dataset", "digits", *words, "finetune"]) == 0
    assert capsys.readouterr().out.startswith("finetune-digits-clear-s0-")


def images(count: int = 6) -> list[Path]:
    """Write images of two classes into the working folder, and return their files."""
    files = []
    for at in range(count):
        file = Path("imgs") / "ab"[at % 2] / f"{at}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(at).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
        files.append(file)
    return files


def test_a_folder_is_also_found_in_the_working_folder(place: Path) -> None:
    images()
    assert Folder(folder="imgs").load().classes == 2
    (place / "data").mkdir()
    assert Folder(folder="imgs").load().classes == 2
    with pytest.raises(SteradError, match=r"there is no 'data/gone' or 'gone': correct --folder"):
        Folder(folder="gone").load()


@pytest.mark.parametrize("image_size", [None, 8])
def test_all_corrupt_images_are_named_in_one_go(image_size: int | None) -> None:
    files = images()
    for bad in (files[0], files[3], files[5]):
        bad.write_bytes(b"no image")
    with pytest.raises(SteradError, match=r"^3 of 6 images cannot be decoded: ") as caught:
        Folder(folder="imgs", image_size=image_size).load()
    assert all(repr(str(bad)) in str(caught.value) for bad in (files[0], files[3], files[5]))
    assert repr(str(files[1])) not in str(caught.value)


def test_corrupt_images_of_both_splits_are_named(place: Path) -> None:
    files = images()
    for split in ("train", "test"):
        for file in files:
            target = Path("split") / split / file.relative_to("imgs")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes() if file != files[2] else b"no image")
    with pytest.raises(SteradError, match=r"^2 of 12 images cannot be decoded: .*train.*test"):
        Folder(folder="split").load()


def test_missing_data_are_found_once_before_the_first_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("many.toml").write_text('[fixed]\ndataset = "cifar10"\n[axes]\nseed = [0, 1, 2, 3]\n')
    assert main(["study", "many.toml", "--root", "."]) == 2, "no option of a study"
    for words in (["study", "many.toml"], ["search", "er", "--dataset", "cifar10"]):
        capsys.readouterr()
        assert main(words) == 2
        said = capsys.readouterr().err
        assert said.count("sterad data get cifar10") == 1
        assert "failed" not in said
    assert not Path("runs").exists()


def test_an_empty_study_is_refused() -> None:
    Path("empty.toml").write_text('title = "nothing"\n')
    with pytest.raises(SteradError, match=r"it has no runs: give values under \[fixed\]"):
        Study.from_toml("empty.toml")


def test_a_file_of_others_is_never_to_be_deleted() -> None:
    Path("notes.txt").write_text("root:x:0:0\n")
    with pytest.raises(SteradError, match=r"give the path of a file that save\(\) wrote") as caught:
        OnlineClassifier.load("notes.txt")
    assert "delete" not in str(caught.value)


def test_a_diverging_classifier_says_so() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((200, 8)).astype(np.float32) * 100, np.arange(200) % 4
    feed = OnlineClassifier("er", memory=20, width=2, fields={"lr": 1e5})

    def follow() -> None:
        for _ in range(5):
            feed.partial_fit(x, y).predict(x)

    with pytest.raises(SteradError, match="the classifier has diverged"):
        follow()
