"""Parts of a classifier given as objects: encoder, memory, retrieval, optimizer, augmentation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sterad import OnlineClassifier
from sterad.errors import SteradError
from sterad.memory import ClassBalanced

RNG = np.random.default_rng(0)
Y = np.repeat([3, 1, 2], 12)
X = RNG.integers(0, 80, (36, 3, 8, 10), dtype=np.uint8)
X[np.arange(36), Y - 1] += 150  # the class is the bright channel


def backbone() -> nn.Module:
    torch.manual_seed(0)
    convolution = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
    return nn.Sequential(convolution, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1))


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-2)


def darken(images: Tensor) -> Tensor:
    return images * torch.rand(len(images), 1, 1, 1)


def make(encoder: Any, **arguments: Any) -> OnlineClassifier:
    given: dict[str, Any] = {
        "encoder": encoder,
        "memory": ClassBalanced(20),
        "retrieval": "mir",
        "optimizer": adamw,
        "augment": darken,
        "variance": 2.0,
        "memory_batch": 6,
        "views": 1,
        "projection": 8,
        "precision": "float32",
    }
    return OnlineClassifier("agd-fd", **given | arguments)


@pytest.mark.parametrize("frozen", [True, False])
def test_all_parts_may_be_objects(frozen: bool, tmp_path: Path) -> None:
    encoder = backbone()
    before = [one.clone() for one in encoder.state_dict().values()]
    classifier, file = make(encoder, frozen=frozen), tmp_path / "saved"
    classifier.partial_fit(X, Y)
    unchanged = zip(before, encoder.state_dict().values(), strict=True)
    assert all(torch.equal(old, new) for old, new in unchanged), "it learns from a copy"
    classifier.save(file)
    parts: dict[str, Any] = {
        "encoder": encoder,
        "optimizer": adamw,
        "augment": darken,
        "memory": ClassBalanced(20),
    }
    loaded = OnlineClassifier.load(file, **parts)
    for one in (classifier, loaded):
        for _ in range(8):
            one.partial_fit(X[::-1], Y[::-1])
    assert np.array_equal(classifier.predict_proba(X), loaded.predict_proba(X))
    assert classifier.score(X, Y) > 0.5  # three classes of equal size


def test_frozen_features_are_kept_instead_of_images() -> None:
    classifier = make(backbone(), frozen=True, augment="none", retrieval=None)
    for _ in range(8):
        classifier.partial_fit(X, Y)
    assert classifier._finished is not None
    inner: Any = classifier._finished.learner().inner
    assert next(inner.memory.everything()).x.shape[1:] == (6,)
    assert classifier.score(X, Y) > 0.8


def test_a_closed_form_behind_a_frozen_encoder() -> None:
    classifier = OnlineClassifier("slda", encoder=backbone())
    for part in np.array_split(np.arange(36), 5):
        classifier.partial_fit(X[part], Y[part])
    assert classifier.score(X, Y) > 0.9


class Overfull(ClassBalanced):
    """A policy that returns more samples than it is asked for."""

    def sample(self, n: int) -> Any:
        return super().sample(n + 1)


def nan_encoder() -> nn.Module:
    module = backbone()
    for weight in module.parameters():
        nn.init.constant_(weight, float("nan"))
    return module


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": nn.Conv2d(3, 4, 3)}, "4, 6, 8"),
        ({"encoder": nan_encoder}, "NaN"),
        ({"frozen": True, "head": "none", "projection": 6}, "nothing can be trained"),
        ({"train_from": "layer4"}, "layer4"),
        ({"memory": Overfull(20), "retrieval": "random"}, "7 samples"),
        ({"optimizer": lambda parameters: None}, "NoneType"),
        ({"augment": lambda images: images[:, :1]}, "shape"),
        ({"weights": "missing.pt"}, "missing.pt"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    classifier = make(change.pop("encoder", None) or backbone(), **change)
    with pytest.raises(SteradError, match=message):
        classifier.partial_fit(X, Y)
    assert not hasattr(classifier, "classes_")


def test_weights_that_do_not_fit_are_named(tmp_path: Path) -> None:
    wrong = {"0.0.weight": torch.zeros(6, 3, 3, 3), "other": torch.zeros(1)}
    torch.save(wrong, tmp_path / "weights.pt")
    with pytest.raises(SteradError, match=r"other.*0\.0\.bias|0\.0\.bias.*other"):
        make(backbone(), weights=tmp_path / "weights.pt").partial_fit(X, Y)


def test_another_object_at_loading_is_refused(tmp_path: Path) -> None:
    classifier, file = make(backbone(), frozen=True), tmp_path / "saved"
    classifier.partial_fit(X, Y).save(file)
    other: Callable[[Tensor], Tensor] = lambda images: 1 - images  # noqa: E731
    parts: dict[str, Any] = {"optimizer": adamw, "memory": ClassBalanced(20)}
    with pytest.raises(SteradError, match="encoder"):
        OnlineClassifier.load(file, augment=darken, **parts)
    with pytest.raises(SteradError, match="augment"):
        OnlineClassifier.load(file, encoder=backbone(), augment=other, **parts)
