"""The interface of every method: inputs that raise, and views of inputs that have none."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, Replay
from sterad.methods.base.learner import check_inputs
from sterad.streams import Batch
from sterad.views import Augmentation
from tests.methods.scaffold import build, count_images, random_images


@pytest.fixture(params=["agd-fd", "finetune"])
def learner(request: pytest.FixtureRequest) -> Replay:
    method: str = request.param
    return build(method, classes=4)


def images_with(value: float) -> Tensor:
    x = random_images(2)
    x[1, 0, 3, 3] = value
    return x


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (random_images(2), [0, 4], "label 4 is outside the 4 declared classes"),
        (random_images(2), [0, -1], "label -1 is negative"),
        (images_with(float("nan")), [0, 1], "NaN or infinite"),
        (images_with(float("inf")), [0, 1], "NaN or infinite"),
        (random_images(2, shape=(3, 8, 8)), [0, 1], r"shape \(3, 8, 8\).*built for \(1, 8, 8\)"),
        (random_images(2, shape=(1, 9, 9)), [0, 1], r"shape \(1, 9, 9\)"),
        (random_images(0), [], "empty"),
        ((random_images(2) * 255).byte(), [0, 1], "floats in"),
    ],
)
def test_an_invalid_batch_raises_and_changes_nothing(
    x: Tensor, y: list[int], message: str, learner: Replay
) -> None:
    with pytest.raises(SteradError, match=message):
        learner.observe(Batch(x, torch.tensor(y, dtype=torch.int64)))
    assert len(learner.seen) == 0
    learner.observe(Batch(random_images(2), torch.tensor([0, 1])))
    assert learner.seen.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_inputs_of_any_float_dtype_are_checked_without_overflow(dtype: torch.dtype) -> None:
    # The sum of these values is infinite in float16.
    x, problem = torch.full((400, 10), 6e4).to(dtype), Problem((10,), 4, memory=10)
    check_inputs(x, problem)
    x[2, 5] = float("nan")
    with pytest.raises(SteradError, match="NaN or infinite"):
        check_inputs(x, problem)


def test_fitted_classifiers_need_a_batch_and_a_consolidation() -> None:
    learner = build("agd-fd")
    with pytest.raises(SteradError, match="observe a batch"):
        learner.consolidate()
    with pytest.raises(SteradError, match="consolidate"):
        learner.predict(random_images(2))


def test_a_head_has_no_scores_before_the_first_class() -> None:
    assert build("finetune").immediate_scores(random_images(2))[0].shape == (2, 0)


def test_predicting_images_of_another_shape_raises(learner: Replay) -> None:
    learner.observe(Batch(random_images(2), torch.tensor([0, 1])))
    learner.consolidate()
    with pytest.raises(SteradError, match="shape"):
        learner.predict(random_images(2, shape=(3, 8, 8)))


def test_a_fitted_classifier_without_a_memory_raises() -> None:
    with pytest.raises(SteradError, match="keeps nothing"):
        build("finetune", classifier="nearest-mean")


VECTORS = {"input_shape": (6,), "encoder": "mlp"}


def images_per_step(learner: Replay) -> int:
    """Return the images that a step on 4 new and 8 stored inputs passes through the network."""
    shape = learner.problem.input_shape
    learner.observe(Batch(random_images(8, shape=shape), torch.arange(8) % 4))
    return count_images(learner, Batch(random_images(4, 1, shape), torch.arange(4)))


@pytest.mark.parametrize("method", ["agd-fd", "vmf-fd", "scr", "er", "pcr"])
@pytest.mark.parametrize("fields", [{}, {"views": 4}])
def test_feature_vectors_have_no_views(method: str, fields: dict[str, Any]) -> None:
    assert images_per_step(build(method, problem=VECTORS, **fields)) == 12


@pytest.mark.parametrize("method", ["agd-fd", "scr"])
def test_images_without_augmentation_have_no_views(method: str) -> None:
    assert images_per_step(build(method, augmentation="none")) == 12
    views = METHODS[method].Config().views
    assert images_per_step(build(method)) == 12 * (views + 1)


@dataclass(frozen=True)
class Jitter(Augmentation):
    """Adds noise to vectors."""

    takes_vectors = True

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        return x + 0.1 * torch.randn(x.shape, generator=rng)


def test_an_augmentation_of_vectors_gives_them_views() -> None:
    learner = build("agd-fd", problem=VECTORS, parts={"augmentation": Jitter()}, views=2)
    assert images_per_step(learner) == 36
    x = torch.rand(4, 6)
    first, second, raw = learner.views_of(x)
    assert torch.equal(raw, x)
    assert not torch.equal(first, second)
