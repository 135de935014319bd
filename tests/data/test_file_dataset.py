import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sterad.data import DATASETS, Cifar10, Cifar100
from sterad.data.file_dataset import FileDataset, Layout, data_root
from sterad.data.sources import SOURCES
from sterad.errors import SteradError

LAYOUT = Layout("cifar-100-python", (("train", "train.gz"), ("test",)))


def test_every_source_is_a_dataset_with_complete_fields() -> None:
    for name, source in SOURCES.items():
        described = DATASETS[name]
        assert issubclass(described, FileDataset)
        assert described.name == name
        assert source.license
        assert source.page.startswith("http")
        for remote in (remote for choice in source.choices for remote in choice):
            assert urlsplit(remote.url).scheme in ("http", "https")
            assert remote.md5 is None or re.fullmatch("[0-9a-f]{32}", remote.md5)
            assert remote.size > 1000
        assert all(re.fullmatch("[0-9a-f]{32}", md5) for md5 in source.md5.values())


def test_every_unpacked_cifar_file_has_a_checksum() -> None:
    for described in (Cifar10, Cifar100):
        python, known = described.python, SOURCES[described.name].md5
        assert {f"{python.folder}/{file}" for (file,) in python.files} <= set(known)


def test_aliases_of_other_libraries() -> None:
    aliases = {
        "seq-cifar10": "cifar10",
        "split_cifar100": "cifar100",
        "tiny": "tiny-imagenet",
        "tinyimagenet": "tiny-imagenet",
        "seq-tinyimg": "tiny-imagenet",
        "core": "core50",
        "fmnist": "fashion-mnist",
    }
    assert {alias: DATASETS.resolve(alias) for alias in aliases} == aliases


def test_folders_and_accepted_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "cifar-100-python"
    home.mkdir()
    for name in ("train.gz", "test"):
        (home / name).touch()
    for root in (tmp_path, home):
        found, layout = Cifar100(root=root).find_layout(LAYOUT)
        assert layout.paths(found) == [home / "train.gz", home / "test"]
    with monkeypatch.context() as patch:
        patch.setattr(Cifar100, "system_folders", (home,))
        assert Cifar100(root=tmp_path / "no").find_layout(LAYOUT)[0] == home
    (home / "test").unlink()
    for root in (tmp_path, home):
        with pytest.raises(SteradError, match=r"cifar-100-python' lacks test: move that folder"):
            Cifar100(root=root).find_layout(LAYOUT)


def test_unrelated_train_folder_is_not_an_incomplete_dataset(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    with pytest.raises(SteradError, match="there is no cifar100 in"):
        Cifar100(root=tmp_path).find_layout(LAYOUT)


def test_default_root(monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_root(None) == Path("data")
    monkeypatch.setenv("STERAD_DATA", "elsewhere")
    assert data_root(None) == Path("elsewhere")
    assert data_root(Path("given")) == Path("given")
