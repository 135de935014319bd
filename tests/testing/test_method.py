"""check_method finds methods that break the contract and names the rule that they break."""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.methods import Learner, Parts, Problem, Replay, ReplayConfig
from sterad.streams import Batch
from sterad.testing import check_method
from sterad.testing.method import same


@dataclass(frozen=True)
class SmallConfig(ReplayConfig):
    augmentation: str = "none"
    memory_batch: int = 4


class Valid(Replay):
    """Plain replay, which passes; each of the other methods breaks one rule."""

    Config = SmallConfig

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        both = Batch.concatenate(retrieved, batch)
        logits = self.engine.forward([self.engine.to_device(both.x)])
        return F.cross_entropy(logits, both.y.to(logits.device))


class ChangesImages(Valid):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        batch.x.mul_(0.5)
        return super().loss(retrieved, batch)


class ChangesLabels(Valid):
    def remember(self, batch: Batch) -> None:
        super().remember(batch)
        batch.y.zero_()


class LearnsFromNewClassesOnly(Valid):
    def observe(self, batch: Batch) -> Tensor | None:
        new = set(batch.y.tolist()) - set(self.seen.tolist())
        return super().observe(batch) if new else None


class SkipsLastImage(Valid):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        return super().loss(retrieved, Batch(batch.x[:-1], batch.y[:-1]))

    def remember(self, batch: Batch) -> None:
        super().remember(Batch(batch.x[:-1], batch.y[:-1]))


class StoresTwice(Valid):
    def remember(self, batch: Batch) -> None:
        super().remember(batch)
        super().remember(batch)


class ForgetsState(Valid):
    """Divides the loss by a count that is not in its state."""

    calls = 0

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        self.calls += 1
        return super().loss(retrieved, batch) / self.calls


class ForgetsStateOfScores(Valid):
    """Scales its scores by a sum that is not in its state."""

    total = 0.0

    def remember(self, batch: Batch) -> None:
        super().remember(batch)
        self.total += float(batch.x.sum())

    def class_scores(self, outputs: Tensor) -> Tensor:
        return super().class_scores(outputs) * (1 + self.total)


class UsesGlobalGenerator(Valid):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        return super().loss(retrieved, batch) * (1 + 0.1 * torch.rand(()))


class Overfills(Valid):
    @classmethod
    def default_parts(cls, config: Any, problem: Problem) -> Parts:
        return super().default_parts(config, replace(problem, memory=2 * problem.memory))


class PredictsUnseen(Valid):
    def immediate_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with self.engine.evaluation():
            return self.network(self.engine.to_device(x)), torch.arange(self.network.outputs)


class PredictsOneLabel(Valid):
    def predict(self, x: Tensor) -> Tensor:
        return super().predict(x)[:1]


class LearnsInConsolidate(Valid):
    def consolidate(self) -> None:
        super().consolidate()
        with torch.no_grad():
            next(self.network.parameters()).mul_(0.9)


class IgnoresSeed(Valid):
    def __init__(self, config: ReplayConfig, problem: Problem, parts: Parts) -> None:
        fixed = replace(problem, seed=0)
        super().__init__(config, fixed, self.default_parts(config, fixed))


class IsNotReproducible(Valid):
    seeds = itertools.count()

    def __init__(self, config: ReplayConfig, problem: Problem, parts: Parts) -> None:
        super().__init__(config, replace(problem, seed=next(self.seeds)), parts)


class Diverges(Valid):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        return super().loss(retrieved, batch) / 0


class MiscountsSeenClasses(Valid):
    def see(self, batch: Batch) -> None:
        super().see(batch)
        self.seen = torch.arange(4)


class StaysOnCPU(Valid):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        weights = torch.ones(4)
        return (
            super().loss(retrieved, batch)
            + (self.engine.forward([self.engine.to_device(batch.x)]) * weights).sum()
        )


class CountsImagesByHand(Valid):
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        self.engine.images += len(batch)
        return super().loss(retrieved, batch)


@pytest.mark.slow
def test_a_valid_method_passes_with_any_config() -> None:
    check_method(Valid)
    check_method(Valid, SmallConfig(classifier="nearest-mean", head="none"))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (ChangesImages, "observe changed the images of its batch"),
        (ChangesLabels, "observe changed the labels of its batch"),
        (LearnsFromNewClassesOnly, "image 0 of batch 1 was neither learned from nor stored"),
        (SkipsLastImage, "image 4 of batch 0 was neither learned from nor stored"),
        (StoresTwice, "the memory holds an image more than once"),
        (ForgetsState, "some state is missing from it"),
        (ForgetsStateOfScores, "some state is missing from it"),
        (UsesGlobalGenerator, "the global generator was used"),
        (Overfills, "the memory holds 14 images, more than 12"),
        (PredictsUnseen, "predict returned a class that was never seen"),
        (PredictsOneLabel, "predict must return one label per image"),
        (LearnsInConsolidate, "consolidate, predict or immediate_scores changed what is learned"),
        (IgnoresSeed, "another seed gave the same result"),
        (IsNotReproducible, "the result differs|the same seed gave another result"),
        (Diverges, "the loss is (inf|nan) at step 0"),
        (StaysOnCPU, "on another device: mul mixes tensors .* use self.engine.to_device"),
        (
            CountsImagesByHand,
            "76 images .*, and 48 were counted with their pixels: count passes outside",
        ),
        (MiscountsSeenClasses, "`seen` differs from the labels observed"),
    ],
)
def test_an_invalid_method_raises_and_names_the_rule(method: type[Learner], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_method(method)


def test_an_unknown_name_raises() -> None:
    with pytest.raises(ValueError, match="unknown method 'missing'"):
        check_method("missing")


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
def test_same_compares_states_bit_for_bit(first: Any, second: Any, equal: bool) -> None:
    assert same(first, second) is equal
    assert same(first, first)
