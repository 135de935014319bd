from pathlib import Path

import pytest

from sterad.data.layout import Layout, data_root, find_layout
from sterad.errors import SteradError

LAYOUT = Layout("cifar-100-python", (("train", "train.gz"), ("test",)))


def test_folders_and_accepted_names(tmp_path: Path) -> None:
    home = tmp_path / "cifar-100-python"
    home.mkdir()
    for name in ("train.gz", "test"):
        (home / name).touch()
    for root in (tmp_path, home):
        found, layout = find_layout("cifar100", root, (LAYOUT,))
        assert layout.paths(found) == [home / "train.gz", home / "test"]
    assert find_layout("cifar100", tmp_path / "no", (LAYOUT,), (home,))[0] == home
    (home / "test").unlink()
    for root in (tmp_path, home):
        with pytest.raises(SteradError, match=r"cifar-100-python' lacks test: move that folder"):
            find_layout("cifar100", root, (LAYOUT,))


def test_unrelated_train_folder_is_not_an_incomplete_dataset(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    with pytest.raises(SteradError, match="there is no cifar100 in"):
        find_layout("cifar100", tmp_path, (LAYOUT,))


def test_default_root(monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_root(None) == Path("data")
    monkeypatch.setenv("STERAD_DATA", "elsewhere")
    assert data_root(None) == Path("elsewhere")
    assert data_root(Path("given")) == Path("given")
