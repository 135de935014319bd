from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.data.check import check
from sterad.errors import SteradError

Made = Callable[..., Path]


def test_nothing_part_and_damage(make_cifar: Made, tmp_path: Path) -> None:
    found = check("cifar100", tmp_path)
    assert not found.there
    assert "sterad data get cifar100" in found.sentence
    found = check("cifar100", make_cifar("cifar100", "python"))
    assert found.there
    assert not found.whole
    assert "in part: 4 classes, 4 training and 2 test images, of 100, 50,000" in found.sentence
    (tmp_path / "cifar-100-python" / "meta").unlink()
    assert "lacks meta" in check("cifar100", tmp_path).sentence


def test_there_is_nothing_to_check_of_your_own(tmp_path: Path) -> None:
    for name in ("digits", "folder"):
        with pytest.raises(SteradError, match="nothing to check"):
            check(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("cifar100", "cifar-100-python"),
        ("cifar10", "cifar-10-batches-bin"),
        ("mnist", "mnist"),
        ("fashion-mnist", "fashion-mnist"),
    ],
)
def test_the_real_files_have_the_official_checksums(
    real_data: Callable[[str], Path], name: str, folder: str
) -> None:
    found = check(name, real_data(folder), bytes_too=True)
    assert found.whole, found.sentence


def test_a_changed_byte_of_the_real_files(real_data: Callable[[str], Path], tmp_path: Path) -> None:
    source = real_data("mnist") / "mnist"
    (tmp_path / "mnist").mkdir()
    for file in source.iterdir():
        (tmp_path / "mnist" / file.name).write_bytes(file.read_bytes())
    labels = tmp_path / "mnist" / "t10k-labels-idx1-ubyte"
    content = bytearray(labels.read_bytes())
    content[-1] ^= 1
    labels.write_bytes(content)
    found = check("mnist", tmp_path, bytes_too=True)
    assert found.there
    assert not found.whole
    assert "t10k-labels-idx1-ubyte' is not the official one" in found.sentence
