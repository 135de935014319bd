"""Methods computed in short formats and with a compiled encoder learn the same."""

import copy

import pytest
import torch
import torch._dynamo.utils

from sterad.encoders.network import COMPILE_AFTER
from sterad.engine import Execution
from sterad.engine.execution import Precision
from sterad.methods import Learner, Replay
from sterad.streams import Batch
from sterad.testing.method import same
from tests.methods.scaffold import assert_resumes, build, open_stream, train

PASSES = 6
"""Forward passes per step of the compiled learners: five views and the raw images."""


def build_in(precision: Precision, method: str = "er") -> Replay:
    problem = {"width": 4, "seed": 1, "execution": Execution(precision=precision)}
    return build(method, classes=4, problem=problem)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("method", ["er", "agem", "dvc", "agd-fd"])
def test_short_formats_give_the_loss_of_float32(method: str, precision: Precision) -> None:
    stream = open_stream(classes=4, per_class=20)
    exact, short = build_in("float32", method), build_in(precision, method)
    losses = [(exact.observe(stream.batch(i)), short.observe(stream.batch(i))) for i in range(6)]
    expected, loss = next((a, b) for a, b in losses if a is not None and b is not None)
    assert loss.dtype == torch.float32
    assert short.network.features(stream.batch(0).x).dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=0.02)
    assert all(weight.dtype == torch.float32 for weight in short.network.parameters())
    assert all(bool(torch.isfinite(value).all()) for value in short.network.state_dict().values())


def test_the_loss_scale_of_float16_is_saved() -> None:
    stream, learner = open_stream(classes=4, per_class=20), build_in("float16")
    train(learner, stream, 3)
    scale = learner.engine.scaler.get_scale()
    assert learner.state_dict()["scaler"]["scale"] == scale > 1
    assert_resumes(learner, build_in("float16"), stream.batch(3))


def build_compiled(
    compiled: bool = True, view_threads: int = 1, encoder: str = "resnet18"
) -> Replay:
    execution = Execution(view_threads=view_threads, compile=compiled)
    problem = {"input_shape": (3, 8, 8), "width": 16, "encoder": encoder, "execution": execution}
    return build("agd-fd", classes=10, problem=problem, views=PASSES - 1)


def make_batches(count: int) -> list[Batch]:
    rng = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 10, 3, 8, 8), generator=rng) / 255
    return [Batch(x, torch.arange(10)) for x in pixels]


def weights(learner: Learner) -> list[torch.Tensor]:
    return list(learner.state_dict()["network"].values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch warns about its own internals
@pytest.mark.usefixtures("_compiler")
def test_frequent_batch_sizes_are_compiled_and_a_resumed_run_has_equal_bits() -> None:
    eager, compiled = build_compiled(False), build_compiled()
    # The first batch has no memory, two more fill it; from then on each step has 40 images.
    compiled_from = 3 + COMPILE_AFTER // PASSES
    *before, last = make_batches(compiled_from + 4)
    for number, batch in enumerate(before):
        expected, loss = (float(learner.observe(batch) or 0) for learner in (eager, compiled))
        assert expected == pytest.approx(loss, rel=1e-3)
        assert same(weights(eager), weights(compiled)) == (number < compiled_from)
    passes = {20: PASSES, 30: PASSES, 40: PASSES * (len(before) - 3)}
    assert compiled.state_dict()["sizes"] == passes
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    state = copy.deepcopy(compiled.state_dict())
    torch._dynamo.reset()  # as in a new process, which has compiled nothing
    resumed = build_compiled()
    resumed.load_state_dict(state)
    for learner in (compiled, resumed):
        learner.observe(last)
    assert same(weights(compiled), weights(resumed))


@pytest.mark.filterwarnings("ignore")  # torch warns about its own internals
@pytest.mark.usefixtures("_restore_torch")
def test_rare_batch_sizes_are_not_compiled() -> None:
    learner = build_compiled()
    for batch in make_batches(4):
        learner.observe(batch)
    assert learner.state_dict()["sizes"] == {20: PASSES, 30: PASSES, 40: PASSES}
    assert not torch._dynamo.utils.counters["frames"]


@pytest.mark.parametrize(("view_threads", "encoder"), [(2, "resnet18"), (1, "mlp")])
def test_parallel_passes_and_mlps_are_not_compiled(view_threads: int, encoder: str) -> None:
    learner = build_compiled(True, view_threads, encoder)
    for batch in make_batches(4):
        learner.observe(batch)
    assert not learner.state_dict()["sizes"]
