"""A compiled encoder: for what comes often alone, learning the same, resumed to the bit."""

import copy

import pytest
import torch
import torch._dynamo.utils

from sterad.encoders.network import COMPILE_AFTER
from sterad.engine import Execution
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.streams import Batch

VIEWS = 6
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # torch's own, about its own internals
    pytest.mark.usefixtures("_torch_as_it_was"),
]


def learner(compiled: bool, view_threads: int = 1, encoder: str = "resnet18") -> Learner:
    kind = METHODS["agd-fd"]
    problem = Problem(
        (3, 8, 8),
        10,
        memory=30,
        width=16,
        encoder=encoder,
        execution=Execution(view_threads=view_threads, compile=compiled),
    )
    return build_learner(kind, kind.Config(views=VIEWS - 1), problem)


def batches(count: int) -> list[Batch]:
    rng = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 10, 3, 8, 8), generator=rng) / 255
    return [Batch(x, torch.arange(10)) for x in pixels]


@pytest.mark.slow
@pytest.mark.usefixtures("_compiler")
def test_what_comes_often_is_compiled_and_a_resumed_run_has_the_same_bits() -> None:
    plain, compiled = learner(False), learner(True)
    often = 3 + COMPILE_AFTER // VIEWS  # one alone, two while memory fills, then 40 images
    *before, last = batches(often + 4)
    for number, batch in enumerate(before):
        losses = [float(one.observe(batch) or 0) for one in (plain, compiled)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)
        alike = [
            torch.equal(one, other)
            for one, other in zip(_weights(plain), _weights(compiled), strict=True)
        ]
        assert all(alike) == (number < often)  # until then it goes as it is
    counted = {20: VIEWS, 30: VIEWS, 40: VIEWS * (len(before) - 3)}
    assert compiled.state_dict()["sizes"] == counted
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1  # of one size
    state = copy.deepcopy(compiled.state_dict())
    torch._dynamo.reset()  # as in another process, which has compiled nothing
    resumed = learner(True)
    resumed.load_state_dict(state)
    for one in (compiled, resumed):
        one.observe(last)
    assert all(map(torch.equal, _weights(compiled), _weights(resumed)))


def test_short_batches_are_never_compiled() -> None:
    torch._dynamo.utils.counters.clear()
    made = learner(True)
    for batch in batches(4):
        made.observe(batch)
    assert made.state_dict()["sizes"] == {20: VIEWS, 30: VIEWS, 40: VIEWS}
    assert not torch._dynamo.utils.counters["frames"]


@pytest.mark.parametrize(("view_threads", "encoder"), [(2, "resnet18"), (1, "mlp")])
def test_what_would_gain_nothing_is_never_compiled(view_threads: int, encoder: str) -> None:
    made = learner(True, view_threads, encoder)
    for batch in batches(4):
        made.observe(batch)
    assert not made.state_dict()["sizes"]


def _weights(made: Learner) -> list[torch.Tensor]:
    return list(made.state_dict()["network"].values())
