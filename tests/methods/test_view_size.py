"""Views of a lower resolution and without the raw image: passes, cost, resume, refusals."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import make_encoder
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.cost import Size, images
from sterad.methods import METHODS
from sterad.methods.agd_fd import AngularGaussianFixedDirections
from sterad.methods.er import ER
from sterad.streams import Batch
from sterad.testing import check_method
from sterad.views import Augmentation
from tests.methods.scaffold import build, count_images, open_stream, random_images, train

STREAM = open_stream(classes=4, batch_size=5)


class Dark(Augmentation):
    """Halves each pixel: a view without randomness."""

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        return x / 2


def literal_half(x: Tensor) -> Tensor:
    """Return 4 x 4 means of 8 x 8 images: triangles that are 4 pixels wide, cut at the border."""
    n, c = x.shape[:2]
    out = torch.zeros(n, c, 4, 4)
    weights = torch.zeros(4, 8)
    for i in range(4):
        for j in range(8):
            weights[i, j] = max(0.0, 1 - abs((j + 0.5) - (2 * i + 1)) / 2)
        weights[i] = weights[i] / weights[i].sum()
    for i in range(4):
        for j in range(4):
            for k in range(8):
                for m in range(8):
                    out[:, :, i, j] += weights[i, k] * weights[j, m] * x[:, :, k, m]
    return out


def recorded_passes(learner: Any, batch: Batch) -> list[Tensor]:
    """Return the inputs of the passes of one loss."""
    passes: list[Tensor] = []
    forward = learner.engine.forward

    def record(views: Any, unit: bool = False) -> Tensor:
        passes.extend(one.clone() for one in views)
        out: Tensor = forward(views, unit=unit)
        return out

    learner.engine.forward = record
    learner.loss(learner.retrieve(batch), batch)
    return passes


@pytest.mark.parametrize(
    ("method", "raw", "shapes"),
    [
        (ER, None, [(18, 4), (9, 8)]),
        (ER, False, [(18, 4)]),
        (AngularGaussianFixedDirections, None, [(9, 4), (9, 4), (9, 8)]),
        (AngularGaussianFixedDirections, False, [(9, 4), (9, 4)]),
    ],
)
def test_views_are_reduced_and_the_raw_image_is_not(
    method: Any, raw: bool | None, shapes: list[tuple[int, int]]
) -> None:
    fields: dict[str, Any] = {"memory_batch": 4, "views": 2, "view_size": 4, "raw_view": raw}
    learner = build(method, 4, 12, parts={"augmentation": Dark()}, **fields)
    train(learner, STREAM, 2)
    batch, stored = STREAM.batch(2), copy.deepcopy(learner.memory).sample(4)
    x = Batch.concatenate(stored, batch).x
    passes = recorded_passes(learner, batch)
    assert [(len(one), one.shape[2]) for one in passes] == shapes
    for one in passes:
        expected = x if one.shape[2] == 8 else literal_half(x / 2)
        for part in one.split(9):
            assert torch.allclose(part, expected, atol=1e-6)


def test_a_step_of_er_with_small_views_is_the_literal_one() -> None:
    fields: dict[str, Any] = {"weight_decay": 0.0, "momentum": 0.0, "memory_batch": 4}
    learner = build(
        "er", 4, 12, parts={"augmentation": Dark()}, view_size=4, raw_view=True, **fields
    )
    train(learner, STREAM, 2)
    student = copy.deepcopy(learner.network)
    batch, stored = STREAM.batch(2), copy.deepcopy(learner.memory).sample(4)
    both = Batch.concatenate(stored, batch)
    logits = torch.cat([student(literal_half(both.x / 2)), student(both.x)])
    F.cross_entropy(logits, both.y.repeat(2)).backward()
    assert count_images(learner, batch) == 18
    for weight, start in zip(learner.network.parameters(), student.parameters(), strict=True):
        assert start.grad is not None
        assert torch.allclose(weight, start - 0.01 * start.grad, atol=1e-5)


@pytest.mark.parametrize("side", [12, 16, 24, 31, 40, 48, 64])
@pytest.mark.parametrize("encoder", ["resnet18", "preact-resnet18"])
def test_a_resnet_pools_smaller_views_to_as_many_features(encoder: str, side: int) -> None:
    network = make_encoder(encoder, (1, 64, 64), 1).eval()
    assert network.features == 8 * 4
    assert network(random_images(2, shape=(1, side, side))).shape == (2, 32)


def test_a_view_costs_its_share_of_the_pixels_of_an_image() -> None:
    size = Size(1000, 0, (3, 32, 32), 100)

    def per_step(**fields: Any) -> float:
        config = RunConfig.of(dataset="cifar100", method="agd-fd", memory_batch=10, **fields)
        return images(config, size) / 100

    full = per_step(views=3)
    # 20 images: three views of 24 x 24 in place of 32 x 32 save 3 · (1 - 0.5625) each.
    assert full - per_step(views=3, view_size=24) == pytest.approx(20 * 3 * 0.4375)
    assert full - per_step(views=3, raw_view=False) == pytest.approx(20)


@pytest.mark.parametrize(
    ("method", "fields", "message"),
    [
        ("ocm", {"view_size": 4}, "which pairs images and views in one pass"),
        ("dvc", {"raw_view": False}, "raw_view=False has no effect on DVC"),
        ("er", {"view_size": 8}, "view_size=8 reduces images of more than 8 x 8"),
        ("er", {"view_size": 4, "augmentation": "none"}, "has no effect without random views"),
        ("er", {"raw_view": False, "views": 0}, "raw_view=False is for random views, and views=0"),
    ],
)
def test_fields_without_an_effect_are_refused(
    method: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(SteradError, match=message):
        build(method, **fields)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ({"input_shape": (5,), "encoder": "mlp"}, "has no effect without random views"),
        ({"encoder": "mlp"}, "the encoder does not take views of 4 x 4 pixels: it fails on them"),
        ({"input_shape": (1, 64, 64)}, "the encoder does not take views of 4 x 4 pixels"),
    ],
)
def test_inputs_and_encoders_that_have_no_smaller_views_are_refused(
    problem: dict[str, Any], message: str
) -> None:
    with pytest.raises(SteradError, match=message):
        build("er", view_size=4, problem=problem)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["er", "agd-fd", "scr"])
def test_small_views_keep_the_contract(method: str) -> None:
    fields = {"view_size": 4, "raw_view": False, "views": 2, "teacher": "ema"}
    check_method(method, METHODS[method].Config(**fields))
