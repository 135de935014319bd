"""What a new user tries first: commands without arguments, own images, wrong files."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sterad import OnlineClassifier, Study
from sterad.cli import COMMANDS, main
from sterad.data import Folder
from sterad.errors import SteradError
from sterad.experiments.launchers import Job


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STERAD_DATA", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [
        ("list", 0, "agd-fd"),
        ("data", 0, "sterad data get"),
        ("study", 2, "sterad study needs a STUDY"),
        ("search", 2, "sterad search needs a METHOD: one of agd-fd"),
        ("stream", 0, "clear (tasks 5, seed 0): 1,442 images"),
        ("report", 2, "'runs' is not a folder of runs"),
        ("verify", 2, "'runs' is not a folder of runs"),
    ],
)
def test_every_command_without_arguments_works_or_names_what_it_needs(
    command: str, code: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command]) == code
    output = capsys.readouterr()
    assert expected in output.out + output.err


@pytest.mark.parametrize("command", ["train er", "study demo", "search er"])
def test_a_file_as_the_folder_of_runs_is_refused_at_once(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("notes.txt").write_text("mine")
    assert main([*command.split(), "--out", "notes.txt"]) == 2
    assert capsys.readouterr().err == (
        "sterad: --out 'notes.txt' is a file: give a folder, which is created if it does not "
        "exist\n"
    )


def test_train_without_arguments_trains_on_digits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(job: Job, _: object) -> None:  # the real one takes a minute
        raise SteradError(f"{job.id} is started")

    monkeypatch.setattr(Job, "run", run)
    assert main(["train"]) == 2
    assert "agd-fd-digits-clear-s0-1eff0ef119 is started" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: sterad") or command == "data"
    for noise in ("{None}", "of-method", "of_method", "own options", "Traceback"):
        assert noise not in shown


@pytest.mark.parametrize(
    ("kind", "listed", "not_listed"),
    [("methods", "agd-fd", "von-mises-fisher"), ("law", "von-mises-fisher", "agd-fd")],
)
def test_one_kind_of_components_is_listed(
    kind: str, listed: str, not_listed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", kind]) == 0
    shown = capsys.readouterr().out
    assert listed in shown
    assert not_listed not in shown


def test_the_method_can_follow_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--per-class", "4", "--test-per-class", "2", "--width", "2", "--threads", "1"]
    assert main(["train", "--dataset", "digits", *words, "finetune"]) == 0
    assert capsys.readouterr().out.startswith("finetune-digits-clear-s0-")


def write_images(count: int = 6) -> list[Path]:
    """Write images of two classes into the working folder and return their paths."""
    files = []
    for i in range(count):
        file = Path("imgs") / "ab"[i % 2] / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(i).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
        files.append(file)
    return files


def test_a_folder_of_images_is_found_in_the_working_folder(folder: Path) -> None:
    write_images()
    assert Folder(folder="imgs").load().classes == 2
    (folder / "data").mkdir()
    assert Folder(folder="imgs").load().classes == 2
    with pytest.raises(SteradError, match=r"there is no 'data/gone' or 'gone': correct --folder"):
        Folder(folder="gone").load()


@pytest.mark.parametrize("image_size", [None, 8])
def test_all_corrupt_images_are_listed_in_one_message(image_size: int | None) -> None:
    files = write_images()
    for bad in (files[0], files[3], files[5]):
        bad.write_bytes(f"no image {bad}".encode())
    with pytest.raises(SteradError, match=r"^3 of 6 images cannot be decoded: ") as caught:
        Folder(folder="imgs", image_size=image_size).load()
    assert all(repr(str(bad)) in str(caught.value) for bad in (files[0], files[3], files[5]))
    assert repr(str(files[1])) not in str(caught.value)


def test_corrupt_images_of_both_splits_are_listed(folder: Path) -> None:
    files = write_images()
    for split in ("train", "test"):
        for file in files:
            target = Path("split") / split / file.relative_to("imgs")
            target.parent.mkdir(parents=True, exist_ok=True)
            content = file.read_bytes() if file != files[2] else b"no image"
            target.write_bytes(content + split.encode())  # no image may be in both splits
    with pytest.raises(SteradError, match=r"^2 of 12 images cannot be decoded: .*train.*test"):
        Folder(folder="split").load()


def test_missing_data_are_reported_once_before_the_first_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("many.toml").write_text('[fixed]\ndataset = "cifar10"\n[axes]\nseed = [0, 1, 2, 3]\n')
    assert main(["study", "many.toml", "--root", "."]) == 2, "a study has no such option"
    for words in (["study", "many.toml"], ["search", "er", "--dataset", "cifar10"]):
        capsys.readouterr()
        assert main(words) == 2
        errors = capsys.readouterr().err
        assert errors.count("sterad data get cifar10") == 1
        assert "failed" not in errors
    assert not Path("runs").exists()


def test_an_empty_study_is_refused() -> None:
    Path("empty.toml").write_text('title = "nothing"\n')
    with pytest.raises(SteradError, match=r"it has no runs: give values under \[fixed\]"):
        Study.from_toml("empty.toml")


def test_an_unrelated_file_is_refused_without_advice_to_delete_it() -> None:
    Path("notes.txt").write_text("root:x:0:0\n")
    with pytest.raises(SteradError, match=r"give the path of a file that save\(\) wrote") as caught:
        OnlineClassifier.load("notes.txt")
    assert "delete" not in str(caught.value)


def test_a_diverging_classifier_raises_an_error() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((200, 8)).astype(np.float32) * 100, np.arange(200) % 4
    classifier = OnlineClassifier("er", memory=20, width=2, lr=1e5)

    def train() -> None:
        for _ in range(5):
            classifier.partial_fit(x, y).predict(x)

    with pytest.raises(
        SteradError, match=r"the norm of the gradient is .* in rows .* nothing of this call"
    ):
        train()
