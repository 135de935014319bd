"""The door of every method: what a batch may be."""

import pytest
import torch

from sterad.errors import SteradError
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.methods.base.learner import check_inputs
from sterad.streams import Batch


@pytest.fixture(params=["agd-fd", "finetune"])
def learner(request: pytest.FixtureRequest) -> Learner:
    cls = METHODS[request.param]
    return build_learner(cls, cls.Config(), Problem((1, 8, 8), 4, memory=10, width=2))


def images(n: int = 2, shape: tuple[int, ...] = (1, 8, 8)) -> torch.Tensor:
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(0))


def with_value(value: float) -> torch.Tensor:
    x = images()
    x[1, 0, 3, 3] = value
    return x


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (images(), [0, 4], "label 4 is outside the 4 declared classes"),
        (images(), [0, -1], "label -1 is negative"),
        (with_value(float("nan")), [0, 1], "NaN or infinite"),
        (with_value(float("inf")), [0, 1], "NaN or infinite"),
        (images(shape=(3, 8, 8)), [0, 1], r"shape \(3, 8, 8\).*built for \(1, 8, 8\)"),
        (images(shape=(1, 9, 9)), [0, 1], r"shape \(1, 9, 9\)"),
        (images(0), [], "empty"),
        ((images() * 255).byte(), [0, 1], "floats in"),
    ],
)
def test_bad_batches_are_refused_and_change_nothing(
    x: torch.Tensor, y: list[int], said: str, learner: Learner
) -> None:
    with pytest.raises(SteradError, match=said):
        learner.observe(Batch(x, torch.tensor(y, dtype=torch.int64)))
    assert len(learner.seen) == 0
    learner.observe(Batch(images(), torch.tensor([0, 1])))
    assert learner.seen.tolist() == [0, 1]


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_any_float_is_looked_at_and_large_ones_are_numbers(kind: torch.dtype) -> None:
    x, problem = torch.full((400, 10), 6e4).to(kind), Problem((10,), 4, memory=10)
    check_inputs(x, problem)  # though the sum of half of them would be infinite
    x[2, 5] = float("nan")
    with pytest.raises(SteradError, match="NaN or infinite"):
        check_inputs(x, problem)


def test_asking_before_learning(learner: Learner) -> None:
    if type(learner).__name__ == "Finetune":
        assert learner.immediate_scores(images())[0].shape == (2, 0)
        return
    with pytest.raises(SteradError, match="observe a batch"):
        learner.consolidate()
    with pytest.raises(SteradError, match="consolidate"):
        learner.predict(images())


def test_asking_about_other_shapes(learner: Learner) -> None:
    learner.observe(Batch(images(), torch.tensor([0, 1])))
    learner.consolidate()
    with pytest.raises(SteradError, match="shape"):
        learner.predict(images(shape=(3, 8, 8)))


def test_a_classifier_that_needs_memory_is_refused_without_one() -> None:
    cls = METHODS["finetune"]
    with pytest.raises(SteradError, match="keeps nothing"):
        build_learner(
            cls, cls.Config(classifier="nearest-mean"), Problem((1, 8, 8), 4, memory=10, width=2)
        )
