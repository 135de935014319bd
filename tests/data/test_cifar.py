from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sterad.data import DATASETS, Cifar10, Cifar100
from sterad.errors import SteradError

Made = Callable[..., Path]


@pytest.mark.parametrize("layout", ["python", "binary"])
@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_both_layouts_give_the_same_images(
    make_cifar: Made, cifar_images: tuple[np.ndarray, np.ndarray], name: str, layout: str
) -> None:
    images, labels = cifar_images
    data = DATASETS[name](root=make_cifar(name, layout)).load()  # type: ignore[call-arg]
    cut = 5 if name == "cifar10" else 4
    np.testing.assert_array_equal(data.train_images, images[:cut])
    np.testing.assert_array_equal(data.test_images, images[cut:])
    assert data.train_labels.tolist() == labels[:cut].tolist()
    assert data.test_labels.tolist() == labels[cut:].tolist()
    assert data.flip
    assert data.name == name
    if layout == "python":
        assert data.class_names == ("a", "b", "c", "d")


def test_dataset_folder_as_root(make_cifar: Made) -> None:
    root = make_cifar("cifar100", "python")
    assert len(Cifar100(root=root / "cifar-100-python").load().train_labels) == 4


def test_class_names_of_the_binary_files(make_cifar: Made) -> None:
    root = make_cifar("cifar10", "binary")
    assert Cifar10(root=root).load().class_names[:2] == ("airplane", "automobile")
    names = "".join(f"name{i}\n" for i in range(10)) + "\n"
    (root / "cifar-10-batches-bin" / "batches.meta.txt").write_text(names)
    assert Cifar10(root=root).contents().class_names[9] == "name9"


def test_truncated_binary_file_raises(make_cifar: Made) -> None:
    file = make_cifar("cifar10", "binary") / "cifar-10-batches-bin" / "data_batch_3.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SteradError, match=r"data_batch_3.bin' is truncated: its 3072 bytes"):
        Cifar10(root=file.parents[1]).load()


def test_truncated_pickle_raises(make_cifar: Made) -> None:
    file = make_cifar("cifar100", "python") / "cifar-100-python" / "train"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(SteradError, match=r"train' is damaged"):
        Cifar100(root=file.parents[1]).load()


def test_wrong_number_of_labels_raises(
    python2: Callable[[object], bytes], make_cifar: Made
) -> None:
    file = make_cifar("cifar100", "python") / "cifar-100-python" / "test"
    file.write_bytes(python2({b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [1]}))
    with pytest.raises(
        SteradError, match=r"shape \(2, 3072\) with labels as int64 of shape \(1,\)"
    ):
        Cifar100(root=file.parents[1]).load()


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({b"data": np.zeros((2, 3072), np.uint8)}, "has no 'fine_labels'"),
        ({b"data": np.zeros((2, 3000), np.uint8), b"fine_labels": [0, 1]}, r"shape \(2, 3000\)"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [0, 9]}, "label 9 at index 1"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [0, [1]]}, "array and list inst"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": b"ab"}, "array and bytes inst"),
        ({b"data": [[1, 2], [3]], b"fine_labels": [0, 1]}, "has list and "),
        ({b"data": np.zeros(0, np.uint8), b"fine_labels": []}, r"shape \(0,\)"),
        ({b"data": 3, b"fine_labels": 4}, "has int and int instead of an array and a list"),
    ],
)
def test_invalid_pickles_raise(
    python2: Callable[[object], bytes], make_cifar: Made, found: dict[bytes, object], message: str
) -> None:
    root = make_cifar("cifar100", "python")
    (root / "cifar-100-python" / "test").write_bytes(python2(found))
    with pytest.raises(SteradError, match=message):
        Cifar100(root=root).load()


@pytest.mark.parametrize("names", [[3], [[b"a"]], 7, b"abcd", [b"a"] * 2])
def test_invalid_class_names_raise(
    python2: Callable[[object], bytes], make_cifar: Made, names: object
) -> None:
    root = make_cifar("cifar100", "python")
    (root / "cifar-100-python" / "meta").write_bytes(python2({b"fine_label_names": names}))
    with pytest.raises(SteradError, match=r"has no list of names|is outside 0 to 1"):
        Cifar100(root=root).load()


def test_names_that_are_not_text_raise(make_cifar: Made) -> None:
    root = make_cifar("cifar10", "binary")
    (root / "cifar-10-batches-bin" / "batches.meta.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(SteradError, match=r"batches\.meta\.txt' is damaged"):
        Cifar10(root=root).load()


def test_missing_files_raise(make_cifar: Made, tmp_path: Path) -> None:
    with pytest.raises(SteradError, match=r"no cifar10 in.*sterad data get cifar10 --root"):
        Cifar10(root=tmp_path).load()
    with pytest.raises(SteradError, match=r"there is no folder"):
        Cifar10(root=tmp_path / "nowhere").load()
    (tmp_path / "cifar-10-binary.tar.gz").touch()
    with pytest.raises(SteradError, match=r"only the archive cifar-10-binary.tar.gz"):
        Cifar10(root=tmp_path).load()
    (make_cifar("cifar10", "binary") / "cifar-10-batches-bin" / "data_batch_4.bin").unlink()
    with pytest.raises(SteradError, match=r"lacks data_batch_4.bin"):
        Cifar10(root=tmp_path).load()


def test_root_from_the_environment(
    make_cifar: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STERAD_DATA", str(make_cifar("cifar10", "binary")))
    assert len(Cifar10().load().train_labels) == 5


@pytest.mark.parametrize(
    ("name", "classes", "per_class", "tasks", "scale"),
    [
        ("cifar10", None, None, 5, 1500),
        ("cifar100", None, None, 10, 1500),
        ("cifar100", 20, 20, 10, 12),
        ("cifar100", 10, None, 5, 150),
        ("split_cifar100", 7, 9999, 1, 105),
        ("seq-cifar10", 4, 500, 2, 60),
    ],
)
def test_defaults_need_no_files(
    name: str, classes: int | None, per_class: int | None, tasks: int, scale: float
) -> None:
    described = DATASETS[name](root=Path("nowhere"), classes=classes, per_class=per_class)  # type: ignore[call-arg]
    defaults = described.defaults()
    assert (defaults.width, defaults.tasks) == (64, tasks)
    assert defaults.scale == pytest.approx(scale)


def test_real_cifar100(real_data: Callable[[str], Path]) -> None:
    data = Cifar100(root=real_data("cifar-100-python")).load()
    assert data.train_images.shape == (50_000, 3, 32, 32)
    assert data.test_images.shape == (10_000, 3, 32, 32)
    means = data.train_images.mean(axis=(0, 2, 3)) / 255
    np.testing.assert_allclose(means, (0.5071, 0.4865, 0.4409), atol=5e-5)
    assert data.train_labels[:5].tolist() == [19, 29, 0, 11, 1]
    assert set(np.bincount(data.train_labels)) == {500}
    assert data.class_names[19] == "cattle"


def test_real_cifar10(real_data: Callable[[str], Path]) -> None:
    data = Cifar10(root=real_data("cifar-10-batches-bin")).load()
    assert data.train_images.shape == (50_000, 3, 32, 32)
    means = data.train_images.mean(axis=(0, 2, 3)) / 255
    np.testing.assert_allclose(means, (0.4914, 0.4822, 0.4465), atol=5e-5)
    assert data.train_labels[:5].tolist() == [6, 9, 9, 4, 1]
    assert data.test_labels[:5].tolist() == [3, 8, 8, 0, 6]
    assert set(np.bincount(data.train_labels)) == {5000}


def test_the_root_may_be_text(make_cifar: Made) -> None:
    root = make_cifar("cifar10", "python")
    assert Cifar10(root=str(root)).load().digest == Cifar10(root=root).load().digest
