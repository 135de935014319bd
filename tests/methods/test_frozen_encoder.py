"""Frozen and partly trained encoders of users with every method, and learners from features."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import EncoderOptions
from sterad.encoders.own_encoder import OwnEncoder
from sterad.engine.engine import DivergenceError, GradientGuard
from sterad.errors import SteradError
from sterad.methods import METHODS, Learner, Problem, Replay, build_learner
from sterad.methods.base.from_scratch import FromScratch
from sterad.methods.base.frozen_encoder import FrozenEncoder
from sterad.methods.base.rollback import Snapshot
from sterad.streams import Batch, Boundary
from sterad.testing.method import same
from tests.methods.scaffold import assert_resumes

SHAPE, FEATURES, STEPS = (3, 8, 8), 6, 20
FAST: dict[str, Any] = {"memory_batch": 4}


class Backbone(nn.Module):
    """A module with BatchNorm and dropout that counts the images of its forward passes."""

    encoded: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU())
        self.drop = nn.Dropout(0.3)
        conv = nn.Conv2d(
            4, FEATURES, 3, 2, 1, bias=False
        )  # a bias before BatchNorm gets no gradient
        self.layer4 = nn.Sequential(conv, nn.BatchNorm2d(FEATURES))
        self.drop4 = nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.stage_outputs(x)[-1]

    def stage_outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        Backbone.encoded += len(x)
        first: Tensor = self.stem(x)
        maps: Tensor = self.layer4(self.drop(first))
        out: Tensor = self.drop4(maps.mean(dim=(2, 3)))
        return first, out


@pytest.fixture
def backbone() -> Backbone:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Backbone()
        module(torch.rand(8, *SHAPE))  # running statistics that differ from their default
    return module


def fast_fields(method: str, **fields: Any) -> Any:
    config, values = METHODS[method].Config, FAST | fields
    # The projection of joint needs a law, which trains other losses than those tested here.
    values |= {"projection": 8} if hasattr(config, "projection") and method != "joint" else {}
    values |= {"epochs": 1} if hasattr(config, "epochs") else {}
    values |= {"candidates": 6} if hasattr(config, "candidates") else {}
    return config(**values)


def make(
    method: str, encoder: Any, options: dict[str, Any] | None = None, **fields: Any
) -> Learner:
    problem = Problem(
        SHAPE, 4, 12, width=2, announced=True, encoder_options=EncoderOptions(**(options or {}))
    )
    return build_learner(method, fast_fields(method, **fields), problem, encoder=encoder)


def batch(step: int, images: int = 4) -> Batch:
    rng = torch.Generator().manual_seed(step)
    x = torch.rand(images, *SHAPE, generator=rng)
    return Batch(x, torch.randint(0, 4, (images,), generator=rng))


def train(learner: Learner, steps: int = STEPS) -> None:
    for step in range(steps):
        learner.observe(batch(step))
        if step == 2:
            learner.boundary(Boundary(0, 3))


def encoder_state(learner: Learner) -> dict[str, Tensor]:
    inner = learner.inner
    assert isinstance(inner, Replay)
    encoders = [one for one in inner.network.encoder.modules() if isinstance(one, OwnEncoder)]
    return encoders[0].module.state_dict()


def changed_names(module: nn.Module, state: dict[str, Tensor]) -> set[str]:
    before = module.state_dict()
    return {name for name, value in state.items() if not torch.equal(value, before[name])}


REPLAY = [name for name in METHODS if issubclass(METHODS[name], Replay)]
NEED_IMAGES = ("ccl-dc", "lump", "mose", "ocm", "onpro")


@pytest.mark.parametrize("method", REPLAY)
@pytest.mark.parametrize("options", [{"frozen": True}, {"train_from": "layer4"}], ids=str)
def test_frozen_weights_and_buffers_do_not_change(
    method: str, options: dict[str, Any], backbone: Backbone
) -> None:
    learner = make(method, backbone, options)
    assert isinstance(learner, Replay), "with augmentation, the encoder is in the network"
    train(learner)
    learner.consolidate()
    learner.predict(batch(0).x)
    changed = changed_names(backbone, encoder_state(learner))
    assert changed == (
        set() if "frozen" in options else {n for n in backbone.state_dict() if "layer4" in n}
    )


@pytest.mark.parametrize("method", [name for name in REPLAY if name not in NEED_IMAGES])
def test_each_image_is_encoded_once_and_the_memory_keeps_features(
    method: str, backbone: Backbone
) -> None:
    learner = make(method, backbone, {"frozen": True}, augmentation="none")
    assert isinstance(learner, FrozenEncoder)
    Backbone.encoded = 0
    train(learner, 6)
    assert Backbone.encoded == 6 * 4
    learner.consolidate()
    assert Backbone.encoded == 6 * 4, "nothing is encoded for a classifier"
    learner.predict(batch(0).x)
    assert Backbone.encoded == 7 * 4
    assert isinstance(learner.inner, Replay)
    for stored in learner.inner.memory.everything():
        assert stored.x.shape[1:] == (FEATURES,)
    assert learner.seen is learner.inner.seen
    encoder = learner.evaluator.network.encoder.get_submodule("module")
    assert not changed_names(backbone, encoder.state_dict())


@pytest.mark.parametrize("method", ["agd-fd", "er", "derpp", "gdumb"])
@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"frozen": True}, {"augmentation": "none"}),
        ({"frozen": True}, {}),
        ({"train_from": "layer4", "encoder_lr": 0.001}, {}),
        ({}, {}),
    ],
)
def test_resumed_to_the_bit(
    method: str, options: dict[str, Any], fields: dict[str, Any], backbone: Backbone
) -> None:
    learner, fresh = (make(method, backbone, options, **fields) for _ in range(2))
    train(learner, 4)
    assert_resumes(learner, fresh, batch(10), batch(11, images=1), batch(12))
    scores = []
    for one in (learner, fresh):
        one.consolidate()
        scores.append(one.scores(batch(13).x))
    assert same(*scores)


def test_features_are_those_of_the_encoder_in_the_network(backbone: Backbone) -> None:
    wrapped = make("er", backbone, {"frozen": True}, augmentation="none")
    inside = make("er", backbone, {"frozen": True})
    assert isinstance(wrapped, FrozenEncoder)
    assert isinstance(inside, Replay)
    x = batch(50, images=60).x
    expected = inside.evaluate(x, lambda network, chunk: network.features(chunk))
    assert torch.equal(wrapped.encode(x), expected)
    assert torch.allclose(wrapped.encode(x[:3]), backbone.eval()(x[:3]), atol=1e-6)


def test_images_that_were_just_predicted_are_not_encoded_again(backbone: Backbone) -> None:
    learner, other = (make("er", backbone, {"frozen": True}, augmentation="none") for _ in range(2))
    for one in (learner, other):
        one.observe(batch(0))
    Backbone.encoded = 0
    learner.immediate_scores(batch(1).x)
    learner.observe(batch(1))
    assert Backbone.encoded == 4
    learner.immediate_scores(batch(2).x)
    learner.observe(batch(3))
    assert Backbone.encoded == 12, "another batch is encoded"
    other.observe(batch(1))
    other.observe(batch(3))
    assert same(learner.state_dict(), other.state_dict())


def test_the_state_of_another_encoder_is_refused(backbone: Backbone) -> None:
    fields = {"augmentation": "none"}
    learner = make("er", backbone, {"frozen": True}, **fields)
    with torch.no_grad():
        next(backbone.parameters()).add_(1)  # the learner has its own copy
    other = make("er", backbone, {"frozen": True}, **fields)
    with pytest.raises(SteradError, match=r"belongs to a frozen encoder with the weights \w{16}, "):
        other.load_state_dict(learner.state_dict())


def test_a_registered_encoder_with_random_weights_can_be_frozen() -> None:
    problem = Problem(SHAPE, 4, 12, width=2, encoder_options=EncoderOptions(frozen=True))
    fields = fast_fields("er", augmentation="none")
    learners = [build_learner("er", fields, problem) for _ in range(2)]
    assert all(isinstance(learner, FrozenEncoder) for learner in learners)
    assert learners[0].state_dict()["encoder_digest"] == learners[1].state_dict()["encoder_digest"]
    assert_resumes(learners[0], learners[1], batch(0), batch(1))


@pytest.mark.parametrize("augmentation", ["none", "full"])
def test_nothing_to_train_is_refused(augmentation: str, backbone: Backbone) -> None:
    with pytest.raises(SteradError, match=r"nothing can be trained: .* use head=linear"):
        make("er", backbone, {"frozen": True}, augmentation=augmentation, head="none")


def test_the_encoder_has_its_own_learning_rate(backbone: Backbone) -> None:
    learner = make("er", backbone, {"encoder_lr": 1e-3}, lr=0.5)
    assert isinstance(learner, Replay)
    head, encoder = learner.engine.optimizer.param_groups
    assert (head["lr"], encoder["lr"]) == (0.5, 1e-3)
    assert len(encoder["params"]) == len(list(backbone.parameters()))
    train(learner, 2)
    moved = [
        float((new - old).detach().abs().max())
        for new, old in zip(encoder["params"], backbone.parameters(), strict=True)
    ]
    assert 0 < max(moved) < 0.01


def test_training_from_scratch_keeps_the_ratio_of_the_learning_rates(backbone: Backbone) -> None:
    learner = make("gdumb", backbone, {"encoder_lr": 5e-4})
    assert isinstance(learner, FromScratch)
    train(learner, 3)
    learner.consolidate()
    head, encoder = learner.engine.optimizer.param_groups
    assert head["lr"] == learner.rate(0)
    assert encoder["lr"] == pytest.approx(learner.rate(0) * 5e-4 / learner.config.lr)


@dataclass(frozen=True)
class MeansConfig:
    """No fields."""


class Means(Learner):
    """The nearest class mean of features, in closed form."""

    Config = MeansConfig
    default_encoder = "flatten"
    trains_encoder = False

    def __init__(self, config: Any, problem: Problem) -> None:
        super().__init__(config, problem)
        self.sums = torch.zeros(problem.classes or 0, *problem.input_shape)

    def observe(self, batch: Batch) -> None:
        self.see(batch)
        self.sums.index_add_(0, batch.y, batch.x)

    def consolidate(self) -> None:
        pass

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        means = nn.functional.normalize(self.sums[self.seen])
        return x @ means.T, self.seen

    immediate_scores = scores

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"sums": self.sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.sums = state["sums"]


def make_means(shape: tuple[int, ...] = SHAPE, encoder: Any = None, **options: Any) -> Learner:
    parts = {} if encoder is None else {"encoder": encoder}
    chosen = EncoderOptions(**options)
    problem = Problem(shape, 4, 0, encoder="flatten", width=2, encoder_options=chosen)
    return build_learner(Means, MeansConfig(), problem, **parts)


def test_a_method_on_features_gets_those_of_the_encoder(backbone: Backbone) -> None:
    learner: Any = make_means(encoder=backbone)
    assert isinstance(learner, FrozenEncoder)
    train(learner, 5)
    inner: Any = learner.inner
    assert inner.sums.shape == (4, FEATURES)
    assert learner.predict(batch(0).x).shape == (4,)
    assert_resumes(learner, make_means(encoder=backbone), batch(9))
    assert isinstance(make_means((5,)), Means), "vectors need no encoder"
    normalized: Any = make_means((2,), input_mean=(1.0, 2.0))
    normalized.observe(Batch(torch.ones(1, 2), torch.tensor([0])))
    assert normalized.inner.sums[0].tolist() == [0, -1]


@pytest.mark.parametrize("options", [{"train_from": "layer4"}, {"encoder_lr": 0.1}])
def test_a_method_on_features_trains_no_encoder(
    options: dict[str, Any], backbone: Backbone
) -> None:
    with pytest.raises(SteradError, match="Means learns from features and trains no encoder"):
        make_means(encoder=backbone, **options)


def test_a_batch_that_diverges_is_rolled_back(backbone: Backbone) -> None:
    def build() -> Learner:
        return make("er", backbone, {"frozen": True}, augmentation="none")

    learner = build()
    train(learner)
    assert isinstance(learner.inner, Replay)
    before, snapshot = deepcopy(learner.state_dict()), Snapshot(learner)
    learner.inner.engine.guard = GradientGuard(1e-9)
    with pytest.raises(DivergenceError):
        learner.observe(batch(0))
    assert same(before, snapshot.restore(build).state_dict())


def test_a_batch_that_diverges_restores_the_position_of_dropout(backbone: Backbone) -> None:
    learner, other = make("er", backbone), make("er", backbone)
    for one in (learner, other):
        train(one, 5)
    assert isinstance(learner, Replay)
    snapshot = Snapshot(learner)
    learner.engine.guard = GradientGuard(1e-9)
    with pytest.raises(DivergenceError):
        learner.observe(batch(0))
    restored = snapshot.restore(lambda: make("er", backbone))
    for one in (restored, other):
        one.observe(batch(7))
    assert same(restored.state_dict(), other.state_dict())


def test_bad_images_are_refused_before_they_are_encoded(backbone: Backbone) -> None:
    learner = make("er", backbone, {"frozen": True}, augmentation="none")
    bad = batch(0)
    bad.x[0, 0, 0, 0] = float("nan")
    with pytest.raises(SteradError, match="the images hold NaN"):
        learner.observe(bad)
    with pytest.raises(SteradError, match=r"the images have shape \(3, 9, 9\)"):
        learner.scores(torch.rand(1, 3, 9, 9))
    assert len(learner.seen) == 0


def test_features_that_are_not_finite_are_refused() -> None:
    class Unstable(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.flatten(1).log() * (x.amax() < 0.5) if x.amin() == 0 else x.flatten(1)

    learner = make("er", Unstable(), {"frozen": True}, augmentation="none")
    with pytest.raises(SteradError, match="the encoder returns NaN or infinite features"):
        learner.observe(Batch(torch.zeros(2, *SHAPE), torch.tensor([0, 1])))


def test_ocm_keeps_a_frozen_encoder_in_its_network(backbone: Backbone) -> None:
    assert isinstance(make("ocm", backbone, {"frozen": True}, augmentation="none"), METHODS["ocm"])
    with pytest.raises(SteradError, match="8 × 12 pixels are not square"):
        build_learner("ocm", METHODS["ocm"].Config(), Problem((3, 8, 12), 4, 12))


@pytest.mark.parametrize("augmentation", ["none", "partial"])
def test_fixed_directions_behind_a_frozen_encoder_predict_by_what_is_trained(
    backbone: Backbone, augmentation: str
) -> None:
    fields = {"augmentation": augmentation, "views": 1, "projection": 8}
    learner = make("agd-fd", backbone, {"frozen": True}, **fields)
    train(learner, 3)
    x = batch(0).x
    before = learner.predict(x), learner.scores(x)[0]
    train(learner, 20)
    learner.consolidate()
    assert isinstance(learner.inner, Replay)
    assert learner.inner.parts.classifier is None
    assert not torch.equal(learner.scores(x)[0][:, :2], before[1][:, :2])
    knn = make("agd-fd", backbone, {"frozen": True}, classifier="knn", **fields)
    assert isinstance(knn.inner, Replay)
    assert knn.inner.parts.classifier is not None
