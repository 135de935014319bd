"""Encoders of users, with any normalization, dropout or buffer, and invalid ones."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import ENCODERS, Encoder, Network
from sterad.engine import Execution
from sterad.engine.parallel import ParallelForward
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.testing.method import same


class Body(Encoder):
    """A linear layer followed by a layer of the test."""

    tail: Callable[[], nn.Module]

    def __init__(self, input_shape: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.features = 6
        self.layers = nn.Sequential(nn.Linear(input_shape[0], 6), type(self).tail())

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


class Counter(nn.Module):
    """Adds its inputs to a buffer."""

    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(6))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.total += x.detach().sum(0)
        return x


class OwnDropout(nn.Module):
    """Draws from the global generator of torch."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(x, 0.5, self.training)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Replay]:
    """Return a function that makes a learner whose encoder ends with a given layer."""

    def make(method: str, tail: Callable[[], nn.Module], threads: int = 2, **fields: Any) -> Replay:
        monkeypatch.setitem(ENCODERS._components, "own", type("Own", (Body,), {"tail": tail}))
        problem = Problem(
            (5,), 4, 20, encoder="own", width=4, execution=Execution(view_threads=threads)
        )
        cls = METHODS[method]
        learner = build_learner(cls, cls.Config(**fields), problem)
        assert isinstance(learner, Replay)
        return learner

    return make


def train(learner: Replay) -> Replay:
    rng = torch.Generator().manual_seed(0)
    for _ in range(4):
        x = torch.rand(8, 5, generator=rng) + 3
        learner.observe(Batch(x, torch.randint(0, 4, (8,), generator=rng)))
    return learner


@pytest.mark.parametrize("method", ["agd-fd", "scr", "derpp", "er"])
def test_running_statistics_are_updated(method: str, made: Callable[..., Replay]) -> None:
    learner = train(made(method, lambda: nn.BatchNorm1d(6)))
    norm = next(x for x in learner.network.modules() if isinstance(x, nn.BatchNorm1d))
    assert norm.running_mean is not None
    assert bool((norm.running_mean != 0).all())
    assert norm.num_batches_tracked is not None
    assert int(norm.num_batches_tracked) > 0


@pytest.mark.parametrize("method", ["agd-fd", "scr", "derpp"])
def test_other_buffers_are_updated(method: str, made: Callable[..., Replay]) -> None:
    learner = train(made(method, Counter))
    counter = next(x for x in learner.network.modules() if isinstance(x, Counter))
    assert bool((counter.total != 0).all())


def run_passes(tail: nn.Module, threads: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Return outputs and buffers after three passes of a network with `tail` as its last layer."""
    torch.manual_seed(0)
    body = type("Own", (Body,), {"tail": staticmethod(lambda: tail)})
    network = Network(body((5,), 4), nn.Identity())
    x = [torch.linspace(0, at, 40).reshape(8, 5) for at in (1, 2, 3)]
    torch.manual_seed(1)
    out = ParallelForward(threads)(network, x)
    return out.detach(), {name: buffer.clone() for name, buffer in network.named_buffers()}


@pytest.mark.parametrize(
    "tail",
    [lambda: nn.BatchNorm1d(6), Counter, OwnDropout, lambda: nn.Dropout(0.5)],
    ids=["batchnorm", "buffer", "own dropout", "dropout"],
)
def test_outputs_and_buffers_do_not_depend_on_threads(tail: Callable[[], nn.Module]) -> None:
    outputs, buffers = run_passes(tail(), 1)
    for threads in (2, 3):
        found, found_buffers = run_passes(tail(), threads)
        assert torch.equal(outputs, found)
        assert all(torch.equal(buffers[name], found_buffers[name]) for name in buffers)


def test_a_registered_encoder_with_dropout_is_resumed_to_the_bit(
    made: Callable[..., Replay],
) -> None:
    whole = train(made("er", OwnDropout))
    resumed = made("er", OwnDropout)
    torch.manual_seed(4321)
    resumed.load_state_dict(whole.state_dict())
    for learner in (whole, resumed):
        train(learner)
    assert same(whole.state_dict(), resumed.state_dict())


class NoFeatures(nn.Module):
    def __init__(self, input_shape: tuple[int, ...], width: int) -> None:
        super().__init__()


class OtherConstructor(Encoder):
    features = 3

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (
            NoFeatures,
            "the encoder 'own' has features = None: .* `features` is the size of its output",
        ),
        (OtherConstructor, "the encoder 'own' cannot be created .*: it must accept the shape"),
        (
            lambda shape, width: 3,
            "the encoder 'own' has features = None: it must be a torch module",
        ),
    ],
)
def test_invalid_encoders_raise(
    encoder: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENCODERS._components, "own", encoder)
    with pytest.raises(SteradError, match=message):
        build_learner(
            METHODS["er"], METHODS["er"].Config(), Problem((5,), 4, 20, encoder="own", width=4)
        )


def test_network_without_parameters_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    config = METHODS["agd-fd"].Config(head="none")
    with pytest.raises(SteradError, match=r"nothing can be trained: .* use head=linear"):
        build_learner(METHODS["agd-fd"], config, Problem((8,), 4, 20, encoder="flatten", width=4))
