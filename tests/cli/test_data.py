import struct
from pathlib import Path

import numpy as np
import pytest

from sterad.cli.data import main
from sterad.data import Npz
from sterad.errors import SteradError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a root with twenty digits in the layout of MNIST."""
    monkeypatch.setattr("sterad.data.mnist.FashionMnist.system_folders", ())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mnist").mkdir()
    for split in ("train", "t10k"):
        images = struct.pack(">HBB3I", 0, 8, 3, 10, 28, 28) + bytes(10 * 28 * 28)
        labels = struct.pack(">HBBI", 0, 8, 1, 10) + bytes(range(10))
        (tmp_path / "mnist" / f"{split}-images-idx3-ubyte").write_bytes(images)
        (tmp_path / "mnist" / f"{split}-labels-idx1-ubyte").write_bytes(labels)
    return tmp_path


def test_list_prints_size_classes_license_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    output = capsys.readouterr().out
    for text in (
        "cifar100\n",
        "100 classes, 50,000 training and 10,000 test images of 3x32x32, 169 MB to download",
        "license: CC BY-SA 4.0",
        "from https://www.cs.toronto.edu/~kriz/cifar.html",
        "digits\n",
    ):
        assert text in output


def test_check_prints_whether_a_dataset_is_complete(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "mnist", "--root", str(root)]) == 1
    assert "mnist is incomplete: 10 classes, 10 training" in capsys.readouterr().out
    assert main(["check", "KMNIST", "--root", str(root)]) == 1
    assert "sterad data get kmnist" in capsys.readouterr().out


def test_check_without_a_name_checks_all_datasets(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STERAD_DATA", str(root))
    assert main(["check"]) == 1
    output = capsys.readouterr().out
    assert "cifar10 is not present\n" in output
    assert "mnist is incomplete" in output


def test_check_of_user_files_verifies_the_cache(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "npz", "--root", str(root)]) == 0
    assert capsys.readouterr().out == "npz has no decoded images\n"
    images, labels = np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 0, 1])
    np.savez(root / "a.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    Npz(root=root, npz_file="a.npz").load()
    assert main(["check", "npz", "--root", str(root)]) == 0
    assert "is complete" in capsys.readouterr().out


def test_get_keeps_existing_files(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "mnist", "--root", str(root)]) == 0
    assert "mnist already exists" in capsys.readouterr().out


def test_invalid_names_and_arguments_are_refused(root: Path) -> None:
    with pytest.raises(SteradError, match="unknown dataset 'mnisty': did you mean 'mnist'"):
        main(["get", "mnisty", "--root", str(root)])
    with pytest.raises(SteradError, match="'folder' has no official files: choose one of"):
        main(["get", "folder", "--root", str(root)])
    with pytest.raises(SteradError, match="unknown command 'data fetch'"):
        main(["fetch"])
    with pytest.raises(SteradError, match="sterad data get needs a NAME: see `sterad data get --"):
        main(["get"])
    with pytest.raises(SteradError, match="unexpected argument 'b': see `sterad data check --"):
        main(["check", "mnist", "b"])


def test_help_shows_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "sterad data get" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["get", "--help"])
    output = " ".join(capsys.readouterr().out.split())
    assert "usage: sterad data get NAME [options]" in output
    assert "run again to continue" in output
