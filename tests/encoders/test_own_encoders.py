"""Encoders of users: any normalization, dropout or buffer; what they lack is said in a sentence."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import ENCODERS, Encoder, Network
from sterad.engine import Execution
from sterad.engine.parallel import ParallelForward
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem
from sterad.methods.replay import Replay
from sterad.streams import Batch


class Body(Encoder):
    """A linear layer and whatever a test puts behind it."""

    tail: Callable[[], nn.Module]

    def __init__(self, input_shape: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.features = 6
        self.layers = nn.Sequential(nn.Linear(input_shape[0], 6), type(self).tail())

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


class Counter(nn.Module):
    """Adds up what passes through it."""

    total: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(6))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.total += x.detach().sum(0)
        return x


class OwnDropout(nn.Module):
    """Draws from torch's global generator, as torch's own functions do."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(x, 0.5, self.training)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Replay]:
    """Return a maker of learners whose encoder ends with a layer."""

    def make(method: str, tail: Callable[[], nn.Module], threads: int = 2, **fields: Any) -> Replay:
        monkeypatch.setitem(ENCODERS._components, "own", type("Own", (Body,), {"tail": tail}))
        problem = Problem(
            (5,), 4, 20, encoder="own", width=4, execution=Execution(view_threads=threads)
        )
        cls = METHODS[method]
        learner = cls(cls.Config(**fields), problem)
        assert isinstance(learner, Replay)
        return learner

    return make


def taught(learner: Replay) -> Replay:
    rng = torch.Generator().manual_seed(0)
    for _ in range(4):
        x = torch.rand(8, 5, generator=rng) + 3
        learner.observe(Batch(x, torch.randint(0, 4, (8,), generator=rng)))
    return learner


@pytest.mark.parametrize("method", ["agd-fd", "scr", "derpp", "er"])
def test_running_statistics_of_every_normalization_are_carried(
    method: str, made: Callable[..., Replay]
) -> None:
    learner = taught(made(method, lambda: nn.BatchNorm1d(6)))
    norm = next(one for one in learner.network.modules() if isinstance(one, nn.BatchNorm1d))
    assert norm.running_mean is not None
    assert bool((norm.running_mean != 0).all())
    assert norm.num_batches_tracked is not None
    assert int(norm.num_batches_tracked) > 0


@pytest.mark.parametrize("method", ["agd-fd", "scr", "derpp"])
def test_any_other_buffer_is_carried(method: str, made: Callable[..., Replay]) -> None:
    learner = taught(made(method, Counter))
    counter = next(one for one in learner.network.modules() if isinstance(one, Counter))
    assert bool((counter.total != 0).all())


def passed(tail: nn.Module, threads: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Return outputs and buffers after three passes of a network with a layer at its end."""
    torch.manual_seed(0)
    body = type("Own", (Body,), {"tail": staticmethod(lambda: tail)})
    made = Network(body((5,), 4), nn.Identity())
    x = [torch.linspace(0, at, 40).reshape(8, 5) for at in (1, 2, 3)]
    torch.manual_seed(1)
    out = ParallelForward(threads)(made, x)
    return out.detach(), {name: one.clone() for name, one in made.named_buffers()}


@pytest.mark.parametrize(
    "tail",
    [lambda: nn.BatchNorm1d(6), Counter, OwnDropout, lambda: nn.Dropout(0.5)],
    ids=["batchnorm", "buffer", "own dropout", "dropout"],
)
def test_threads_change_neither_outputs_nor_buffers(tail: Callable[[], nn.Module]) -> None:
    outputs, buffers = passed(tail(), 1)
    for threads in (2, 3):
        other, others = passed(tail(), threads)
        assert torch.equal(outputs, other)
        assert all(torch.equal(buffers[name], others[name]) for name in buffers)


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
    ("encoder", "told"),
    [
        (NoFeatures, "the encoder 'own' has features = None: .* sets `features` to the size"),
        (OtherConstructor, "the encoder 'own' cannot be made .*: it is called with the shape"),
        (lambda shape, width: 3, "the encoder 'own' has features = None: make it a torch module"),
    ],
)
def test_what_an_encoder_lacks_is_said(
    encoder: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENCODERS._components, "own", encoder)
    with pytest.raises(SteradError, match=told):
        METHODS["er"](METHODS["er"].Config(), Problem((5,), 4, 20, encoder="own", width=4))


def test_nothing_to_train_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    config = METHODS["agd-fd"].Config(head="none")
    with pytest.raises(SteradError, match=r"nothing can be trained: .* use head=linear"):
        METHODS["agd-fd"](config, Problem((8,), 4, 20, encoder="flatten", width=4))
