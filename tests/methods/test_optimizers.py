"""Optimizers by name and by a user's factory: used, saved, resumed, and carried over growth."""

import copy
import io
from typing import Any, get_args

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    LambdaLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)

from sterad.encoders import MLP, make_head
from sterad.encoders.heads import carry_over, grow
from sterad.errors import SteradError
from sterad.methods.base.optimizers import OptimizerConfig, OptimizerName, make_optimizer
from sterad.streams import Batch
from tests.methods.scaffold import assert_resumes, build, open_stream, random_images, train

NAMES: tuple[Any, ...] = get_args(OptimizerName)
CLASS_NAMES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "nadam": "NAdam", "radam": "RAdam"}
CLASS_NAMES |= {"adamax": "Adamax", "rmsprop": "RMSprop", "adagrad": "Adagrad"}
CLASS_NAMES |= {"adadelta": "Adadelta"}


def vectors(step: int, labels: list[int]) -> Batch:
    return Batch(random_images(len(labels), step, (5,)), torch.tensor(labels))


def on_vectors(**fields: Any) -> Any:
    """Return a small learner whose head grows with the classes."""
    parts = fields.pop("parts", {}) | {"encoder": lambda: MLP((5,), 4)}
    return build("er", classes=None, problem={"input_shape": (5,)}, parts=parts, **fields)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_learns_grows_and_resumes_to_the_bit(name: str) -> None:
    learner, fresh = (on_vectors(optimizer=name, memory_batch=4) for _ in range(2))
    before = copy.deepcopy(learner.network.encoder.state_dict())
    for step, labels in enumerate(([0, 1], [1, 0], [0, 2], [3, 1])):
        learner.observe(vectors(step, labels))
    assert type(learner.engine.optimizer).__name__ == CLASS_NAMES[name]
    assert learner.network.outputs == 4
    after = learner.network.encoder.state_dict()
    assert not all(torch.equal(value, before[key]) for key, value in after.items())
    assert_resumes(learner, fresh, vectors(7, [3, 5]), vectors(8, [5, 2]))


@pytest.mark.parametrize("name", NAMES)
def test_training_after_growth_equals_training_of_a_wide_layer(name: str) -> None:
    config = OptimizerConfig(optimizer=name, lr=0.05)  # type: ignore[arg-type]
    rng = torch.Generator().manual_seed(0)
    # Rows of 16 numbers: fused kernels round the last, partial vector in another way.
    narrow, wide = make_head("cosine", 16, 2), make_head("cosine", 16, 4)
    optimizer = make_optimizer(config, narrow.parameters())
    gradients = torch.randn(8, 4, 16, generator=rng)
    gradients[:4, 2:] = 0  # rows that do not exist yet
    start = narrow.get_parameter("weight").detach().clone()

    def step(head: nn.Module, optimizer: torch.optim.Optimizer, t: int) -> None:
        weight = head.get_parameter("weight")
        weight.grad = gradients[t, : len(weight)].clone()
        optimizer.step()

    for t in range(4):
        step(narrow, optimizer, t)
    carry_over(optimizer, grow(narrow, 4, rng))
    new_rows = narrow.get_parameter("weight").detach()[2:]
    wide.load_state_dict({"weight": torch.cat([start, new_rows])})
    wide_optimizer = make_optimizer(config, wide.parameters())
    for t in range(8):
        step(wide, wide_optimizer, t)
    for t in range(4, 8):
        step(narrow, optimizer, t)
    assert torch.equal(narrow.get_parameter("weight"), wide.get_parameter("weight"))


def test_fields_reach_the_optimizer() -> None:
    fields = {"lr": 0.2, "beta2": 0.95, "weight_decay": 0.1}

    def options(**more: Any) -> dict[str, Any]:
        made = make_optimizer(OptimizerConfig(**fields | more), nn.Linear(2, 2).parameters())
        return made.param_groups[0]

    for name in ("adam", "adamw", "nadam", "radam", "adamax"):
        group = options(optimizer=name)
        assert (group["lr"], group["betas"], group["weight_decay"]) == (0.2, (0.9, 0.95), 0.1)
    assert options(optimizer="rmsprop", momentum=0.5)["momentum"] == 0.5
    assert options(optimizer="rmsprop")["alpha"] == options(optimizer="adadelta")["rho"] == 0.95
    assert options(optimizer="sgd", momentum=0.3)["momentum"] == 0.3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"optimizer": "adamw", "momentum": 0.5}, "momentum=0.5 has no effect on .* adamw"),
        ({"optimizer": "adagrad", "beta2": 0.5}, "beta2=0.5 has no effect on .*: leave it at 0.99"),
        ({"optimizer": "lamb"}, "optimizer 'lamb' is unknown: choose adam, sgd, adamw"),
    ],
)
def test_fields_without_effect_and_unknown_names_raise(fields: Any, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build("er", **fields)


def groups(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = [{"params": parameters[:2], "lr": 0.01}]
    return SGD([*groups, {"params": parameters[2:]}], lr=0.1)


def with_cosine(parameters: list[nn.Parameter]) -> Any:
    optimizer = AdamW(parameters, lr=0.01)
    return optimizer, CosineAnnealingLR(optimizer, T_max=10)


def with_lambda(parameters: list[nn.Parameter]) -> Any:
    optimizer = groups(parameters)
    return optimizer, LambdaLR(optimizer, lambda step: 0.9**step)


def with_warmup(parameters: list[nn.Parameter]) -> Any:
    optimizer = SGD(parameters, lr=0.1)
    schedulers = [StepLR(optimizer, 2, 0.5), CosineAnnealingLR(optimizer, 9)]
    return optimizer, SequentialLR(optimizer, schedulers, milestones=[3])


@pytest.mark.filterwarnings("ignore:The epoch parameter in `scheduler.step:UserWarning")
@pytest.mark.parametrize("factory", [groups, AdamW, with_cosine, with_lambda, with_warmup])
def test_a_factory_is_used_and_resumes_to_the_bit(factory: Any) -> None:
    learner, fresh = (on_vectors(parts={"optimizer": factory}) for _ in range(2))
    for step, labels in enumerate(([0, 1], [1, 0], [0, 2], [3, 1])):
        learner.observe(vectors(step, labels))
    assert_resumes(learner, fresh, vectors(7, [3, 5]), vectors(8, [5, 2]))


def test_the_scheduler_is_stepped_once_for_each_optimizer_step() -> None:
    learner, stream = build("er", parts={"optimizer": with_lambda}), open_stream()
    train(learner, stream, 4)  # no step on the first batch
    rates = [group["lr"] for group in learner.engine.optimizer.param_groups]
    assert rates == pytest.approx([0.01 * 0.9**3, 0.1 * 0.9**3])


def test_a_damaged_or_missing_scheduler_is_refused() -> None:
    def saved(factory: Any) -> Any:
        learner = build("er", parts={"optimizer": factory})
        train(learner, open_stream(), 2)
        file = io.BytesIO()
        torch.save(learner.state_dict(), file)
        file.seek(0)
        return torch.load(file, weights_only=True)

    state, plain = saved(with_cosine), saved(lambda parameters: AdamW(parameters, lr=0.01))
    fresh = build("er", parts={"optimizer": with_cosine})
    with pytest.raises(ValueError, match=r"optimizer|scheduler"):
        fresh.load_state_dict(plain)
    del state["optimizer"]["scheduler"]["T_max"]
    with pytest.raises(ValueError, match="scheduler lacks or should not have T_max"):
        fresh.load_state_dict(state)


def plateau(parameters: list[nn.Parameter]) -> Any:
    optimizer = SGD(parameters, lr=0.1)
    return optimizer, ReduceLROnPlateau(optimizer)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda parameters: None, "factory returned NoneType: return a torch optimizer"),
        (lambda parameters: SGD(parameters[:1], lr=1), "holds 1 weights and .* are trained"),
        (lambda parameters: torch.optim.LBFGS(parameters), "LBFGS evaluates the loss several"),
        (lambda parameters: (SGD(parameters, lr=1), 5), "the scheduler int cannot be stepped"),
        (plateau, "the scheduler ReduceLROnPlateau cannot be stepped"),
        (SGD(nn.Linear(1, 1).parameters(), lr=1), "the optimizer is SGD: give a function"),
        ("adam", "the optimizer is str: give a function of the parameters"),
    ],
)
def test_wrong_factories_raise(factory: Any, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build("er", parts={"optimizer": factory})


def test_a_scheduler_beyond_its_end_raises() -> None:
    def factory(parameters: list[nn.Parameter]) -> Any:
        optimizer = SGD(parameters, lr=0.1)
        return optimizer, OneCycleLR(optimizer, max_lr=0.1, total_steps=2)

    learner, stream = build("er", parts={"optimizer": factory}), open_stream()
    with pytest.raises(SteradError, match="the scheduler OneCycleLR fails with: Tried to step 3"):
        train(learner, stream, 5)
