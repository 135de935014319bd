import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sterad.data import DATASETS, Core50
from sterad.errors import SteradError

Made = Callable[..., Path]
TRAIN = [1, 2, 4, 5, 6, 8, 9, 11]


def test_new_instances_protocol(make_core50: Made) -> None:
    data = Core50(root=make_core50()).load()
    assert data.class_names == ("o1", "o10", "o2"), "labels follow the alphabet"
    assert data.domain_names == tuple(f"s{n}" for n in TRAIN)
    assert data.train_images.shape == (48, 3, 128, 128)
    assert data.domains is not None
    sessions, objects = data.train_images[:, 0, 0, 0], data.train_images[:, 1, 0, 0]
    np.testing.assert_array_equal(sessions, np.array(TRAIN)[data.domains])
    np.testing.assert_array_equal(objects, np.array([1, 10, 2])[data.train_labels])
    assert sorted(set(data.test_images[:, 0, 0, 0].tolist())) == [3, 7, 10]


def test_few_images_per_class_come_from_every_session(make_core50: Made) -> None:
    data = Core50(
        root=make_core50(), classes=2, per_class=8, test_per_class=3, image_size=32
    ).load()
    assert data.domains is not None
    assert data.train_images.shape == (16, 3, 32, 32)
    assert np.bincount(data.domains).tolist() == [2] * 8
    assert np.bincount(data.test_labels).tolist() == [3, 3]


def test_missing_session_raises(make_core50: Made) -> None:
    root = make_core50()
    shutil.rmtree(root / "core50_128x128" / "s6")
    with pytest.raises(SteradError, match="lacks s6"):
        Core50(root=root).load()


def test_object_missing_in_one_session_raises(make_core50: Made) -> None:
    root = make_core50()
    shutil.rmtree(root / "core50_128x128" / "s7" / "o2")
    with pytest.raises(SteradError, match="'o2' in only one of the sessions s1 and s7"):
        Core50(root=root).load()


def test_object_without_images_raises(make_core50: Made) -> None:
    root = make_core50()
    for file in (root / "core50_128x128" / "s3" / "o10").iterdir():
        file.unlink()
    with pytest.raises(SteradError, match=r"no image in '.*s3/o10'"):
        Core50(root=root).load()


def test_defaults() -> None:
    # Fifty classes cannot make eight equal tasks; sessions are domains, not tasks.
    assert DATASETS["core"]().defaults().tasks == 5
    assert Core50().defaults().scale == pytest.approx(1500)
    assert Core50(per_class=160).defaults().scale == pytest.approx(1500 * 8000 / 119_894)
