import struct
from pathlib import Path

import pytest

from sterad.cli.data import main
from sterad.errors import SteradError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a root with twenty digits in the layout of MNIST."""
    monkeypatch.setattr("sterad.data.idx.FashionMnist.system_folders", ())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mnist").mkdir()
    for split in ("train", "t10k"):
        images = struct.pack(">HBB3I", 0, 8, 3, 10, 28, 28) + bytes(10 * 28 * 28)
        labels = struct.pack(">HBBI", 0, 8, 1, 10) + bytes(range(10))
        (tmp_path / "mnist" / f"{split}-images-idx3-ubyte").write_bytes(images)
        (tmp_path / "mnist" / f"{split}-labels-idx1-ubyte").write_bytes(labels)
    return tmp_path


def test_list_says_size_classes_license_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    for words in (
        "cifar100\n",
        "100 classes, 50,000 training and 10,000 test images of 3x32x32, 169 MB to fetch",
        "license: CC BY-SA 4.0",
        "from https://www.cs.toronto.edu/~kriz/cifar.html",
        "digits\n",
    ):
        assert words in said


def test_check_one(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "mnist", "--root", str(root)]) == 1
    assert "mnist is incomplete: 10 classes, 10 training" in capsys.readouterr().out
    assert main(["check", "KMNIST", "--root", str(root)]) == 1
    assert "sterad data get kmnist" in capsys.readouterr().out


def test_check_all(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STERAD_DATA", str(root))
    assert main(["check"]) == 1
    said = capsys.readouterr().out
    assert "cifar10 is not there\n" in said
    assert "mnist is incomplete" in said


def test_get_what_is_there(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "mnist", "--root", str(root)]) == 0
    assert "mnist already exists" in capsys.readouterr().out


def test_refusals(root: Path) -> None:
    with pytest.raises(SteradError, match="unknown dataset 'mnisty': did you mean 'mnist'"):
        main(["get", "mnisty", "--root", str(root)])
    with pytest.raises(SteradError, match="'folder' has no official files to download"):
        main(["get", "folder", "--root", str(root)])
    with pytest.raises(SteradError, match="unknown command 'data fetch'"):
        main(["fetch"])
    with pytest.raises(SteradError, match="sterad data get needs a NAME: see `sterad data get --"):
        main(["get"])
    with pytest.raises(SteradError, match="'b' is one word too many: see `sterad data check --"):
        main(["check", "mnist", "b"])


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "sterad data get" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["get", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "usage: sterad data get NAME [options]" in said
    assert "a second call continues" in said
