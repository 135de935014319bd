import re
from urllib.parse import urlsplit

from sterad.data import DATASETS, Cifar10, Cifar100
from sterad.data.sources import SOURCES
from sterad.data.stored import StoredDataset


def test_every_source_is_a_dataset_with_complete_fields() -> None:
    for name, source in SOURCES.items():
        described = DATASETS[name]
        assert issubclass(described, StoredDataset)
        assert described.name == name
        assert source.license
        assert source.page.startswith("http")
        for remote in (one for choice in source.choices for one in choice):
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
