"""Supervision of every stage: whole steps against literal ones, one pass, growth and refusals."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.encoders import Network
from sterad.encoders.stages import StageExperts, stage_shapes
from sterad.engine import Execution
from sterad.errors import SteradError
from sterad.methods import METHODS, Replay
from sterad.streams import Batch
from sterad.testing import check_method
from sterad.testing.method import same
from tests.methods.scaffold import (
    assert_resumes,
    build,
    literal_expert,
    open_stream,
    random_images,
    train,
)

STREAM = open_stream(classes=4, batch_size=5)
SMALL: dict[str, Any] = {"memory_batch": 4, "stage_weight": 0.7, "stage_distillation": 0.3}


class TwoStages(nn.Module):
    """A user's module that declares its stages."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 3, 3, 2), nn.Conv2d(3, 6, 3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.stage_outputs(x)[-1]

    def stage_outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        maps = self.first(x).relu()
        return maps, self.second(maps).mean(dim=(2, 3))


def trained(method: str = "er", steps: int = 3, classes: int | None = 4, **fields: Any) -> Replay:
    learner = build(method, classes, 12, {"seed": 1}, **(SMALL | fields))
    train(learner, STREAM, steps)
    return learner


def literal_outputs(network: Network, x: Tensor) -> list[Tensor]:
    """Return the outputs of the stages from the first to the last."""
    encoder: Any = network.encoder
    y, features = encoder.stem(x), []
    for index, stage in enumerate(encoder.stages):
        y = stage(y)
        if index < 3:
            assert network.stage_experts is not None
            features.append(literal_expert(network.stage_experts.experts[index], y))
    outputs = [head(h) for head, h in zip(network.stage_heads, features, strict=True)]
    return [*outputs, network.head(y.mean(dim=(2, 3)))]


def literal_kl(target: Tensor, output: Tensor) -> Tensor:
    p, q = (target / 4).softmax(1), (output / 4).softmax(1)
    return 16 * (p * (p / q).log()).sum() / len(p)


def test_one_step_of_er_equals_the_literal_algorithm_and_passes_the_encoder_once() -> None:
    learner = trained(augmentation="none", weight_decay=0.0, momentum=0.0)
    reference, passes = copy.deepcopy(learner.network), list[int]()
    batch, stored = STREAM.batch(3), copy.deepcopy(learner.memory).sample(4)
    encoder: Any = learner.network.encoder
    handle = encoder.stem.register_forward_hook(lambda *_: passes.append(1))
    images, loss = learner.images, learner.observe(batch)
    handle.remove()
    assert (len(passes), learner.images - images) == (1, 9)
    both = Batch.concatenate(stored, batch)
    *earlier, last = literal_outputs(reference, both.x)
    expected = F.cross_entropy(last, both.y)
    for p in earlier:
        distance = literal_kl(last.detach(), p)
        expected = expected + 0.7 * (F.cross_entropy(p, both.y) + 0.3 * distance)
    expected.backward()
    assert loss is not None
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for weight, start in zip(learner.network.parameters(), reference.parameters(), strict=True):
        assert start.grad is not None
        assert bool(start.grad.any()), "every weight is trained"
        assert torch.allclose(weight, start - 0.01 * start.grad, atol=1e-6)


def test_fixed_directions_are_the_same_at_every_stage() -> None:
    learner = trained("agd-fd", 2, views=1, projection=8, augmentation="none", optimizer="sgd")
    before = copy.deepcopy(learner)
    loss, batch = learner.observe(STREAM.batch(2)), STREAM.batch(2)
    both = Batch.concatenate(before.memory.sample(4), batch)
    *earlier, last = (F.normalize(p) for p in literal_outputs(before.network, both.x))
    seen = sorted({*before.seen.tolist(), *batch.y.tolist()})
    log_density: Any = before.log_density  # type: ignore[attr-defined]

    def loss_of(z: Tensor) -> Tensor:
        among = sorted(set(both.y.tolist()))
        targets = torch.tensor([among.index(y) for y in both.y.tolist()])
        return F.cross_entropy(log_density(z[:, among]), targets, reduction="sum")

    expected = loss_of(last)
    for z in earlier:
        mean = literal_kl(log_density(last[:, seen]), log_density(z[:, seen]))
        distance = len(both) * mean  # a sum over images, as the loss of fixed directions
        expected = expected + 0.7 * (loss_of(z) + 0.3 * distance)
    assert loss is not None
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize("method", ["agd-fd", "scr", "pcr", "er-ace", "pfc"])
def test_stages_change_neither_draws_nor_recorded_losses(method: str) -> None:
    plain, staged = trained(method, stage_weight=0.0, stage_distillation=1.0), trained(method)
    for learner in (plain, staged):
        learner.sample_losses = []
        learner.observe(STREAM.batch(3))
        assert learner.images == plain.images
    for name, rng in plain.rng.items():
        assert torch.equal(rng.get_state(), staged.rng[name].get_state()), name
    assert len(plain.sample_losses or ()) == len(staged.sample_losses or ())
    assert learner.engine.stage_passes is None


def test_parallel_passes_have_the_bits_of_sequential_ones() -> None:
    losses = []
    for threads in (1, 2):
        execution = Execution(view_threads=threads, threads=1, precision="float32", compile=False)
        problem = {"execution": execution, "seed": 1}
        learner = build("agd-fd", 4, 12, problem, views=2, projection=8, **SMALL)
        train(learner, STREAM, 2)
        losses.append(learner.observe(STREAM.batch(2)))
    assert same(*losses)


def test_a_network_with_stages_is_not_compiled() -> None:
    learner = build("er", problem={"width": 16, "execution": Execution(compile=True)}, **SMALL)
    assert not learner.network.compiles


def test_a_learner_that_grows_with_a_teacher_resumes_bit_for_bit() -> None:
    fields: dict[str, Any] = {"teacher": "ema", "predict_with": "average"}
    learner, fresh = (trained(steps=0, classes=None, **fields) for _ in range(2))
    train(learner, STREAM, 3)
    assert_resumes(learner, fresh, *(STREAM.batch(step) for step in (3, 4)))
    assert learner.teacher is not None
    for network in (learner.network, learner.teacher.network):
        widths = {head.out_features for head in [network.head, *network.stage_heads]}
        assert widths == {int(learner.seen[-1]) + 1}
    learner.consolidate()
    assert set(learner.predict(random_images(4)).tolist()) <= set(learner.seen.tolist())


def test_own_modules_declare_their_stages_by_a_method() -> None:
    learner = build("er", parts={"encoder": TwoStages()}, **SMALL)
    assert learner.network.stage_experts is not None
    assert stage_shapes(learner.network.encoder, (1, 8, 8)) == [(3, 3, 3)]
    train(learner, STREAM, 3)
    with pytest.raises(
        SteradError, match="the encoder Flatten has no stages: use resnet18, or give"
    ):
        build("er", problem={"encoder": "flatten"}, **SMALL)
    plain = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))
    with pytest.raises(SteradError, match="the encoder Sequential has no stages"):
        build("er", parts={"encoder": plain}, **SMALL)
    wrong = TwoStages()
    wrong.stage_outputs = lambda x: (x.mean(dim=(1, 2, 3)), x)  # type: ignore[method-assign]
    wrong.forward = lambda x: x.flatten(1)  # type: ignore[method-assign]
    with pytest.raises(SteradError, match=r"returns tensors of the shapes \[\(2,\)\]"):
        build("er", parts={"encoder": wrong}, **SMALL)


@pytest.mark.parametrize("name", ["resnet18", "resnet18-7x7", "preact-resnet18", "mlp"])
def test_the_last_stage_of_each_encoder_is_its_features(name: str) -> None:
    shape = (3, 32, 48)
    encoder = build("er", problem={"encoder": name, "input_shape": shape}).network.encoder.eval()
    x = random_images(2, shape=shape)
    outputs = encoder.stage_outputs(x)
    assert torch.equal(outputs[-1], encoder(x))
    experts = StageExperts(stage_shapes(encoder, shape), encoder.features)
    assert [h.shape for h in experts(outputs)] == [(2, encoder.features)] * len(outputs)


@pytest.mark.parametrize("method", ["ocm", "dvc", "derpp", "gsa", "finetune", "agem", "lump"])
def test_other_methods_refuse(method: str) -> None:
    with pytest.raises(SteradError, match=r"stage_weight=0.7 computes the loss of a method again"):
        build(method, **SMALL)


def test_distillation_without_supervision_raises() -> None:
    message = "stage_distillation=2.0 has no effect without stage_weight: set stage_weight=1"
    with pytest.raises(SteradError, match=message):
        build("er", stage_distillation=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["er", "agd-fd", "scr"])
def test_supervised_stages_pass_the_contract(method: str) -> None:
    fields = {"views": 1} if method == "agd-fd" else {}
    check_method(method, METHODS[method].Config(stage_weight=1.0, **fields))
