"""The contract catches methods that break it, each with the words for what they break."""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.memory import Memory, Reservoir
from sterad.methods import Learner, Problem, Replay, ReplayConfig
from sterad.seeds import generator
from sterad.streams import Batch
from sterad.testing import check_method
from sterad.testing.method import same


@dataclass(frozen=True)
class SmallConfig(ReplayConfig):
    augmentation: str = "none"
    memory_batch: int = 4


class Good(Replay):
    """Plain replay, which keeps the contract; the others below break one clause each."""

    Config = SmallConfig

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        both = Batch.joined(retrieved, batch)
        logits = self.forward(self.engine.to_device(both.x))
        return F.cross_entropy(logits, both.y.to(logits.device))


class ChangesImages(Good):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        batch.x.mul_(0.5)
        return super().loss(retrieved, batch)


class ChangesLabels(Good):
    def remember(self, batch: Batch) -> None:
        super().remember(batch)
        batch.y.zero_()


class LearnsFromNewClassesOnly(Good):
    def observe(self, batch: Batch) -> Tensor | None:
        new = set(batch.y.tolist()) - set(self.seen.tolist())
        return super().observe(batch) if new else None


class OverlooksTheLast(Good):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        return super().loss(retrieved, Batch(batch.x[:-1], batch.y[:-1]))

    def remember(self, batch: Batch) -> None:
        super().remember(Batch(batch.x[:-1], batch.y[:-1]))


class KeepsTwice(Good):
    def remember(self, batch: Batch) -> None:
        super().remember(batch)
        super().remember(batch)


class ForgetsState(Good):
    """Learns ever more slowly, and does not say how far it is."""

    calls = 0

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        self.calls += 1
        return super().loss(retrieved, batch) / self.calls


class ForgetsWhatOnlyAnswersNeed(Good):
    """Keeps a running mean for its answers alone, out of its state."""

    total = 0.0

    def remember(self, batch: Batch) -> None:
        super().remember(batch)
        self.total += float(batch.x.sum())

    def decide(self, p: Tensor) -> Tensor:
        return super().decide(p) * (1 + self.total)


class UsesTheGlobalGenerator(Good):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        return super().loss(retrieved, batch) * (1 + 0.1 * torch.rand(()))


class Overfills(Good):
    def make_memory(self) -> Memory:
        return Reservoir(2 * self.problem.memory, generator(self.problem.seed, "memory"))


class AnswersUnseen(Good):
    def instant_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with self.engine.evaluation():
            return self.network(self.engine.to_device(x)), torch.arange(self.network.outputs)


class AnswersOneForAll(Good):
    def predict(self, x: Tensor) -> Tensor:
        return super().predict(x)[:1]


class LearnsFromQuestions(Good):
    def consolidate(self) -> None:
        super().consolidate()
        with torch.no_grad():
            next(self.network.parameters()).mul_(0.9)


class IgnoresItsSeed(Good):
    def __init__(self, config: ReplayConfig, problem: Problem) -> None:
        super().__init__(config, replace(problem, seed=0))


class IsNeverTheSame(Good):
    numbers = itertools.count()

    def __init__(self, config: ReplayConfig, problem: Problem) -> None:
        super().__init__(config, replace(problem, seed=next(self.numbers)))


class Diverges(Good):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        return super().loss(retrieved, batch) / 0


class CountsWrongly(Good):
    def admit(self, batch: Batch) -> None:
        super().admit(batch)
        self.seen = torch.arange(4)


class HasADevice(Good):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        weights = torch.ones(4)
        return (
            super().loss(retrieved, batch)
            + (self.forward(self.engine.to_device(batch.x)) * weights).sum()
        )


def test_a_good_method_passes_by_class_and_config() -> None:
    check_method(Good)
    check_method(Good, SmallConfig(classifier="nearest-mean", head="none"))


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (ChangesImages, "observe changed the images that it was given"),
        (ChangesLabels, "observe changed the labels that it was given"),
        (LearnsFromNewClassesOnly, "image 0 of batch 1 was neither learned from nor kept"),
        (OverlooksTheLast, "image 4 of batch 0 was neither learned from nor kept"),
        (KeepsTwice, "the memory holds an image more than once"),
        (ForgetsState, "some state is missing from it"),
        (ForgetsWhatOnlyAnswersNeed, "some state is missing from it"),
        (UsesTheGlobalGenerator, "torch's global generator was used"),
        (Overfills, "the memory holds 14 images and may hold 12"),
        (AnswersUnseen, "predict answered a class that was never seen"),
        (AnswersOneForAll, "predict must give one label an image"),
        (LearnsFromQuestions, "answering changed what is learned"),
        (IgnoresItsSeed, "another seed gave the same result"),
        (IsNeverTheSame, "the result differs|the same seed gave another result"),
        (Diverges, "the loss is (inf|nan) at step 0"),
        (HasADevice, "on the device 'meta': .* is there a device in the code"),
        (CountsWrongly, "`seen` is not what has been seen"),
    ],
)
def test_a_bad_method_is_told_what_it_breaks(method: type[Learner], told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        check_method(method)


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(ValueError, match="unknown method 'nobody'"):
        check_method("nobody")


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (torch.zeros(2), torch.zeros(2), True),
        (torch.zeros(2), torch.tensor([0.0, 1e-45]), False),
        (torch.zeros(2), torch.zeros(3), False),
        (torch.zeros(2), [0.0, 0.0], False),
        ({"a": [torch.ones(1), 2]}, {"a": [torch.ones(1), 2]}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, (2, 3)], [1, (2, 3)], True),
        ([1, 2], [1, 2, 3], False),
        ("a", "a", True),
        (None, 0, False),
    ],
)
def test_states_are_compared_to_the_bit(first: Any, second: Any, equal: bool) -> None:
    assert same(first, second) is equal
    assert same(first, first)
