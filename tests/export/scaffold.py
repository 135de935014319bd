"""Small fitted classifiers of every rule, and 1,000 images of digits."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sterad import OnlineClassifier
from sterad.data.digits import Digits

LETTERS = np.array([*"jihgfedcba"])
"""Labels whose order is not that of their first appearance."""
MLP = {"encoder": "mlp", "width": 2}
DIRECTION = {"classifier": "nearest-direction", "projection": 12, "views": 1}
SHARED = {"covariance": "shared", "covariance_momentum": 0.5, "memory_iterations": 5}
"""A covariance that is estimated and in use after 60 images."""


class Backbone(nn.Module):
    """A convolution, BatchNorm and pooling: a user's own encoder."""

    def __init__(self, channels: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Conv2d(channels, 6, 3), nn.BatchNorm2d(6), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.layers(x)
        return maps.mean(dim=(2, 3))


COLOR = {"input_mean": (0.5, 0.4, 0.3), "input_std": (0.5, 0.6, 0.7), "input_size": 12}
RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "nearest-mean": ("agd-fd", {"views": 1, **MLP}),
    "nearest-mean-resnet": ("er", {"classifier": "nearest-mean", "width": 2}),
    "nearest-direction": ("agd-fd", {**DIRECTION, **MLP}),
    "nearest-direction-vmf": ("vmf-fd", {**DIRECTION, **MLP, "variance": 0.05}),
    "simplex": ("agd-fd", {**DIRECTION, **MLP, "directions": "simplex"}),
    "orthonormal": ("agd-fd", {**DIRECTION, **MLP, "directions": "orthonormal"}),
    "learned-directions": ("agd-fd", {**DIRECTION, **MLP, "directions": "learned"}),
    "shared-covariance": ("agd-fd", {**DIRECTION, **MLP, **SHARED}),
    "shared-learned": ("agd-fd", {**DIRECTION, **MLP, **SHARED, "directions": "learned"}),
    "retrained-head": ("agd-fd", {**DIRECTION, **MLP, "retrain_head": True}),
    "head": ("er", MLP),
    "head-resnet": ("er", {"width": 2}),
    "head-flatten": ("er", {"encoder": "flatten"}),
    "head-own-module": ("er", {"encoder": Backbone()}),
    "head-frozen-own-module": ("er", {"encoder": Backbone(), "frozen": True, "augment": "none"}),
    "head-resized": ("er", {"encoder": Backbone(3), **COLOR}),
    "head-teacher": ("er", {**MLP, "teacher": "ema", "predict_with": "average"}),
    "cosine-head": ("pcr", MLP),
    "linear-probe": ("er", {**MLP, "classifier": "linear-probe"}),
    "lda": ("er", {**MLP, "classifier": "lda"}),
    "ridge-on-memory": ("agd-fd", {"views": 1, **MLP, "classifier": "ridge"}),
    "knn": ("er", {**MLP, "classifier": "knn"}),
    "from-scratch": ("gdumb", {**MLP, "epochs": 1}),
    "joint": ("joint", {**MLP, "epochs": 1}),
    "joint-law": ("joint", {**MLP, "epochs": 1, "law": "angular-gaussian", "projection": 12}),
    "ncm": ("ncm", {}),
    "ncm-unit": ("ncm", {"normalize": True}),
    "slda": ("slda", {}),
    "slda-frozen-resnet": ("slda", {"encoder": "resnet18", "width": 2}),
    "slda-frozen-own-module": ("slda", {"encoder": Backbone(3), **COLOR}),
    "ridge": ("ridge", {}),
    "ridge-projection": ("ridge", {"projection": 40}),
    "fecam": ("fecam", {}),
    "randumb": ("randumb", {"projection": 40}),
}
"""A method and arguments for each rule that predicts, with several encoders."""


@cache
def digits() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.str_]]:
    """Return 60 images of ten classes and their labels."""
    data = Digits().load()
    return data.train_images[:60], LETTERS[data.train_labels[:60]]


@cache
def thousand_images() -> npt.NDArray[np.uint8]:
    """Return 1,000 images: the test images of digits, then others with noise."""
    images = np.resize(Digits().load().test_images, (1000, 1, 8, 8)).astype(np.int64)
    noise = np.random.default_rng(0).integers(-40, 41, images.shape)
    noise[:355] = 0
    return (images + noise).clip(0, 255).astype(np.uint8)


@cache
def fitted(rule: str) -> OnlineClassifier:
    """Return a classifier with this rule that has learned 60 digits; nothing may change it."""
    method, arguments = RULES[rule]
    return OnlineClassifier(method, memory=30, threads=1, **arguments).partial_fit(*digits())


def own_encoder(rule: str) -> dict[str, Any]:
    """Return the argument of `load_exported` for a file of safetensors."""
    encoder = RULES[rule][1].get("encoder")
    if not isinstance(encoder, Backbone):
        return {}
    return {"encoder": Backbone(encoder.layers[0].in_channels)}  # type: ignore[arg-type]


def check_equal(exported: Any, classifier: OnlineClassifier, images: Any) -> None:
    """Assert that an exported classifier predicts as its classifier, to 1e-4.

    Scores above 100 are compared to 1e-6 of the largest: those of nearest means are divided by a
    small variance, and float32 has no more digits.
    """
    expected = classifier._scores(images)[0].numpy()
    scores, finite = exported.scores(images), np.isfinite(expected)
    tolerance = 1e-4 * max(1, np.abs(expected[finite]).max() / 100)
    assert scores.shape == expected.shape
    assert (np.isfinite(scores) == finite).all()
    np.testing.assert_allclose(scores[finite], expected[finite], rtol=0, atol=tolerance)
    assert exported.predict(images).tolist() == classifier.predict(images).tolist()
    assert exported.classes_.tolist() == classifier.classes_.tolist()
    found, wanted = exported.predict_proba(images), classifier.predict_proba(images)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)
