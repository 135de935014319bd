"""Short formats on a processor, slow without units for them: the code of a graphics card."""

import copy
from typing import Any

import pytest
import torch

from sterad.data.synthetic import Synthetic
from sterad.engine import Execution
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.base.replay import Replay
from sterad.streams import Clear, Stream
from sterad.testing.method import same


def stream() -> Stream:
    data = Synthetic(classes=4, per_class=20, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def learner(method: str, **problem: Any) -> Replay:
    kind = METHODS[method]
    made = build_learner(
        kind,
        kind.Config(),
        Problem((1, 8, 8), 4, 30, width=4, seed=1, execution=Execution(**problem)),
    )
    assert isinstance(made, Replay)
    return made


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("method", ["er", "agem", "dvc", "agd-fd"])
def test_a_short_format_learns_what_float32_learns(method: str, precision: str) -> None:
    feed, plain, short = stream(), learner(method), learner(method, precision=precision)
    losses = [(plain.observe(feed.batch(i)), short.observe(feed.batch(i))) for i in range(6)]
    first, second = next((a, b) for a, b in losses if a is not None and b is not None)
    assert second.dtype == torch.float32
    assert short.network.features(feed.batch(0).x).dtype == torch.float32, "heads get all digits"
    assert second.item() == pytest.approx(first.item(), rel=0.02)
    assert all(weight.dtype == torch.float32 for weight in short.network.parameters())
    assert all(bool(torch.isfinite(value).all()) for value in short.network.state_dict().values())


def test_float16_scales_its_loss_and_keeps_the_scale() -> None:
    feed, made = stream(), learner("er", precision="float16")
    for step in range(3):
        made.observe(feed.batch(step))
    assert made.engine.scaler.get_scale() > 1
    state = made.state_dict()
    assert state["scaler"]["scale"] == made.engine.scaler.get_scale()
    other = learner("er", precision="float16")
    other.load_state_dict(copy.deepcopy(state))
    for one in (made, other):
        one.observe(feed.batch(3))
    assert same(made.state_dict(), other.state_dict())
