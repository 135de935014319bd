"""Parts: objects passed to `build_learner`, and parts that a config names, are really used."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.classifiers import CLASSIFIERS, NearestMean
from sterad.encoders import Encoder
from sterad.engine import Engine
from sterad.errors import SteradError
from sterad.memory import MEMORIES, Reservoir
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.sphere import LAWS
from sterad.streams import Batch
from sterad.testing.method import same
from sterad.views import Augmentation
from tests.methods.scaffold import assert_resumes, build, open_stream, random_images, train


class MeanPixel(Encoder):
    """Encodes an image as its mean pixel, repeated."""

    features = 3

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(3))

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((1, 2, 3)).unsqueeze(1) * self.weight


@dataclass(frozen=True)
class Black(Augmentation):
    """Replaces each image by a black one."""

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        return torch.zeros_like(x)


class CountingEngine(Engine):
    """Counts its steps."""

    steps = 0

    def step(self, clip: float | None = None) -> None:
        self.steps += 1
        super().step(clip)


def test_a_memory_is_a_prototype_that_is_copied() -> None:
    memory = Reservoir(7)
    learner, other = (build("er", memory=30, parts={"memory": memory}) for _ in range(2))
    named = build("er", memory=7)
    for one in (learner, other, named):
        train(one, open_stream(), 2)
    assert len(learner.memory) == 7
    assert len(memory) == memory.seen == 0
    assert same(learner.state_dict(), other.state_dict())
    assert same(learner.memory.state_dict(), named.memory.state_dict()), "the run's generator"


def test_an_augmentation_is_used() -> None:
    learner = build("er", parts={"augmentation": Black()}, views=2)
    x = random_images(3)
    *views, raw = learner.views_of(x)
    assert torch.equal(raw, x)
    assert [int(view.count_nonzero()) for view in views] == [0, 0]


def test_an_optimizer_is_used() -> None:
    def make_optimizer(weights: list[torch.nn.Parameter], scaled: bool) -> torch.optim.Optimizer:
        assert not scaled
        return torch.optim.RMSprop(weights, lr=0.5)

    learner, default = build("er", parts={"optimizer": make_optimizer}), build("er")
    for either in (learner, default):
        train(either, open_stream(), 2)
    assert isinstance(learner.engine.optimizer, torch.optim.RMSprop)
    pairs = zip(learner.network.parameters(), default.network.parameters(), strict=True)
    assert not any(torch.equal(weight, other) for weight, other in pairs)


def test_an_encoder_is_used() -> None:
    learner, fresh = (build("er", parts={"encoder": MeanPixel}) for _ in range(2))
    assert isinstance(learner.network.encoder, MeanPixel)
    assert learner.network.head.get_parameter("weight").shape == (6, 3)
    assert torch.equal(
        learner.network.encoder.weight, fresh.network.encoder.get_parameter("weight")
    )
    train(learner, open_stream(), 2)
    assert_resumes(learner, fresh, open_stream().batch(2))


def test_a_classifier_is_used() -> None:
    learner, stream = build("er", parts={"classifier": NearestMean}), open_stream()
    train(learner, stream, 2)
    learner.consolidate()
    expected = build("er", classifier="nearest-mean")
    train(expected, stream, 2)
    expected.consolidate()
    assert isinstance(learner.fitted, NearestMean)
    x = stream.batch(3).x
    assert torch.equal(learner.scores(x)[0], expected.scores(x)[0])
    assert not torch.equal(learner.scores(x)[0], learner.immediate_scores(x)[0])


def test_no_classifier_lets_the_head_predict() -> None:
    parts: dict[str, Any] = {"classifier": None}
    learner, stream = build("er", parts=parts, classifier="nearest-mean"), open_stream()
    train(learner, stream, 2)
    learner.consolidate()
    x = stream.batch(3).x
    assert torch.equal(learner.scores(x)[0], learner.immediate_scores(x)[0])


def test_an_engine_is_used() -> None:
    learner = build("er", parts={"engine": CountingEngine})
    train(learner, open_stream(), 3)
    assert isinstance(learner.engine, CountingEngine)
    assert learner.engine.steps == 2, "no step while the memory is empty"


def test_an_unknown_part_raises() -> None:
    names = "encoder, optimizer, memory, augmentation, classifier, retrieval, engine"
    with pytest.raises(SteradError, match=f"has no part 'memry': its parts are {names}$"):
        build("er", parts={"memry": None})


@dataclass(frozen=True)
class NoFields:
    """The config of `Constant`."""


class Constant(Learner):
    """A learner without parts, which always predicts class 0."""

    Config = NoFields

    def observe(self, batch: Batch) -> None:
        self.see(batch)

    def consolidate(self) -> None:
        pass

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(x), 1), torch.tensor([0])

    immediate_scores = scores


def test_a_learner_without_parts_accepts_none() -> None:
    problem = Problem((1, 8, 8), 4, memory=10)
    assert build_learner(Constant, NoFields(), problem).predict(random_images(2)).tolist() == [0, 0]
    with pytest.raises(SteradError, match=r"Constant has no part 'memory': its parts are none$"):
        build_learner(Constant, NoFields(), problem, memory=Reservoir(3, torch.Generator()))


@pytest.mark.parametrize("policy", [name for name in MEMORIES if name != "none"])
def test_er_learns_and_resumes_with_every_memory_policy(policy: str) -> None:
    learner, fresh = (build("er", memory_policy=policy, memory_batch=4) for _ in range(2))
    stream = open_stream()
    losses = [learner.observe(stream.batch(step)) for step in range(3)]
    assert type(learner.memory) is MEMORIES[policy]
    assert len(learner.memory) == 30
    assert all(loss is not None and bool(loss.isfinite()) for loss in losses[1:])
    assert_resumes(learner, fresh, stream.batch(3), stream.batch(4))


@pytest.mark.parametrize("law", list(LAWS))
def test_fixed_directions_learn_and_resume_under_every_law(law: str) -> None:
    learner, fresh = (build("agd-fd", law=law, views=1, projection=16) for _ in range(2))
    stream = open_stream()
    losses = [learner.observe(stream.batch(step)) for step in range(3)]
    assert learner.law is LAWS[law]  # type: ignore[attr-defined]
    assert [loss is not None and bool(loss.isfinite()) for loss in losses] == [False, True, True]
    assert_resumes(learner, fresh, stream.batch(3), stream.batch(4))


def test_laws_give_different_losses() -> None:
    stream, losses = open_stream(), set[float]()
    for law in LAWS:
        learner = build("agd-fd", law=law, views=1, projection=16)
        learner.observe(stream.batch(0))
        losses.add(float(learner.observe(stream.batch(1)) or 0))
    assert len(losses) == len(list(LAWS))


@pytest.mark.parametrize(
    ("method", "fields", "message"),
    [
        ("er", {"memory_policy": "reservior"}, "did you mean 'reservoir'"),
        ("agd-fd", {"law": "power-sperical"}, "did you mean 'power-spherical'"),
        ("agd-fd", {"law": "Watson"}, "the law 'Watson' is about an axis, .* use one of angular"),
        ("vmf-fd", {"law": "angular_central_gaussian"}, "is about axes, and a loss needs"),
        ("agd-fd", {"law": "uniform"}, "the law 'uniform' has no direction, and a loss needs"),
        ("agd-fd", {"law": "general-angular-gaussian"}, "covariance=shared"),
        ("agd-fd", {"law": "elliptically-symmetric-angular-gaussian"}, "has a covariance, and"),
        ("joint", {"law": "watson"}, "the law 'watson' is about an axis"),
        ("joint", {"law": "vmd"}, "unknown law 'vmd': did you mean 'vmf'"),
        ("er", {"classifier": "oracle"}, f"known are head, {', '.join(CLASSIFIERS)}$"),
        ("er", {"memory_policy": "none"}, "ER takes no step without a memory"),
        ("gdumb", {"memory_policy": "none"}, "needs a memory to train on, not NoMemory"),
    ],
)
def test_unknown_or_unsuitable_names_raise(
    method: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(SteradError, match=message):
        build_learner(METHODS[method], METHODS[method].Config(**fields), Problem((1, 8, 8), 4, 10))


def test_a_memory_that_does_not_restore_its_state_is_refused() -> None:
    class Forgetful(Reservoir):
        stored = 0

        def __len__(self) -> int:
            return self.stored

        def update(self, batch: Batch) -> None:
            super().update(batch)
            self.stored = min(self.seen, self.capacity)

    learner, fresh = (
        build("er", parts={"memory": Forgetful(9, torch.Generator())}) for _ in range(2)
    )
    learner.observe(open_stream().batch(0))
    with pytest.raises(SteradError, match="holds 0 samples after loading and held 9"):
        fresh.load_state_dict(learner.state_dict())
