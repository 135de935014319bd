"""Retrievals in replay methods, and maximally interfered retrieval against a literal one."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network
from sterad.errors import SteradError
from sterad.memory import RETRIEVALS, Memory, Reservoir, Retrieval
from sterad.memory.retrieval import LossRise
from sterad.methods import METHODS, Replay
from sterad.methods.base.interference import loss_rise
from sterad.methods.base.learner import FORWARD_COST
from sterad.plugins import load_plugin
from sterad.streams import Batch
from sterad.testing.method import same
from tests.methods.scaffold import assert_resumes, build, open_stream, train

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_retrieval.py"
WITHOUT_REPLAY = ("finetune", "gdumb", "joint")
REPLAYING = [
    name
    for name, cls in ((name, METHODS[name]) for name in METHODS)
    if issubclass(cls, Replay) and name not in WITHOUT_REPLAY
]
QUICK = ("agd-fd", "derpp", "dvc", "er", "scr")
"""Methods that `make test` trains as well; `make check` trains all."""
SMALL: dict[str, dict[str, Any]] = {
    "agd-fd": {"views": 1, "projection": 16},
    "vmf-fd": {"views": 1, "projection": 16},
    "dvc": {"candidates": 8},
}


def small(method: str, retrieval: str, **fields: Any) -> Replay:
    values = {"memory_batch": 4, **SMALL.get(method, {}), **fields}
    return build(method, problem={"announced": True}, retrieval=retrieval, **values)


@pytest.mark.parametrize("retrieval", ["class-balanced", "mir"])
@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in REPLAYING],
)
def test_every_replay_method_learns_and_resumes(method: str, retrieval: str) -> None:
    if (method, retrieval) == ("dvc", "mir"):
        with pytest.raises(SteradError, match="dvc selects the most interfered candidates by its"):
            small(method, retrieval)
        return
    learner, fresh = small(method, retrieval), small(method, retrieval)
    stream = open_stream(per_class=8)
    train(learner, stream, 3)
    assert isinstance(learner.retrieval, RETRIEVALS[retrieval])  # type: ignore[arg-type]
    assert_resumes(learner, fresh, stream.batch(3))


@pytest.mark.parametrize("method", WITHOUT_REPLAY)
def test_methods_that_replay_nothing_refuse_a_retrieval(method: str) -> None:
    with pytest.raises(SteradError, match=r"replays nothing .* leave retrieval=random"):
        build(method, retrieval="mir")


def literal_losses(network: Network, batch: Batch) -> Tensor:
    """Return the cross-entropy of each image over the six classes, all of them seen."""
    network.eval()
    rows = [network(x[None])[0] for x in batch.x]
    network.train()
    return torch.stack(
        [row.exp().sum().log() - row[y] for row, y in zip(rows, batch.y.tolist(), strict=True)]
    ).detach()


def literal_rise(learner: Replay, batch: Batch, candidates: Batch) -> Tensor:
    """Return the rise of losses under a step of torch's SGD on a copy of the network."""
    reference = copy.deepcopy(learner)
    view = reference.augmentation(batch.x, reference.rng["views"])
    stepped = reference.network
    optimizer = torch.optim.SGD(stepped.parameters(), lr=learner.config.lr)
    F.cross_entropy(stepped(view), batch.y).backward()
    buffers = dict(learner.network.named_buffers())
    for name, buffer in stepped.named_buffers():
        buffer.data.copy_(buffers[name])
    optimizer.step()
    return literal_losses(stepped, candidates) - literal_losses(learner.network, candidates)


def prepared() -> tuple[Replay, Batch]:
    learner, stream = build("er", retrieval="mir", lr=0.1, memory_batch=3), open_stream(tasks=1)
    train(learner, stream, 3)
    assert learner.seen.tolist() == [*range(6)]
    return learner, stream.batch(3)


def test_interference_equals_the_literal_one() -> None:
    learner, batch = prepared()
    candidates = copy.deepcopy(learner.memory).sample(15)
    rise = loss_rise(learner, batch, candidates)
    expected = literal_rise(learner, batch, candidates)
    assert float(expected.abs().max()) > 0.01, "the step has an effect"
    assert torch.allclose(rise, expected, atol=1e-5)
    chosen = learner.retrieve(batch)
    order = expected.argsort(descending=True)[:3]
    assert torch.equal(chosen.x, candidates.x[order])
    assert torch.equal(chosen.y, candidates.y[order])


@pytest.mark.parametrize("method", ["er", "agd-fd", "scr", "derpp", "ocm", "lump", "agem"])
def test_a_virtual_step_changes_nothing_but_the_count_of_images(method: str) -> None:
    learner, stream = small(method, "mir", momentum=0.9, clip=1.0), open_stream(per_class=8)
    train(learner, stream, 3)
    learner.sample_losses = []
    before, candidates = copy.deepcopy(learner.state_dict()), learner.memory.sample(9)
    before["memory"] = copy.deepcopy(learner.memory.state_dict())
    rise = loss_rise(learner, stream.batch(3), candidates)
    after = learner.state_dict()
    assert rise.shape == (9,)
    assert bool(rise.isfinite().all())
    for count in ("images", "passes"):
        assert after.pop(count) != before.pop(count)
    assert same(after, before)
    assert learner.sample_losses == []
    assert learner.network.training
    assert all(weight.grad is None for weight in learner.network.parameters())


def test_a_failing_virtual_step_restores_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, batch = prepared()
    before, calls = copy.deepcopy(learner.network.state_dict()), list[int]()

    def fail_second(outputs: Tensor, labels: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("interrupted")
        return outputs.sum(1)

    monkeypatch.setattr(learner, "candidate_losses", fail_second)
    with pytest.raises(RuntimeError, match="interrupted"):
        loss_rise(learner, batch, learner.memory.sample(5))
    assert same(learner.network.state_dict(), before)


def test_the_cost_of_maximally_interfered_retrieval_is_declared() -> None:
    def step_cost(method: str, **fields: Any) -> float:
        cls = METHODS[method]
        config = cls.Config(retrieval="mir", **fields)
        return cls.cost(config, batch_size=10, memory=100, samples=1000).step

    ranking = 10 + FORWARD_COST * 2 * 50
    assert step_cost("er", memory_batch=10) == pytest.approx(20 + ranking)
    assert step_cost("er", memory_batch=10, mir_candidates=20) == pytest.approx(
        20 + 10 + FORWARD_COST * 2 * 20
    )
    assert step_cost("derpp", memory_batch=10) == pytest.approx(30 + 2 * ranking)
    learner, batch = prepared()
    before = learner.images
    learner.observe(batch)
    assert learner.images - before == 10 + 3 + 10 + 2 * 15


def test_a_retrieval_object_is_copied_and_its_state_is_saved() -> None:
    class EveryOther(Retrieval):
        """Replays at every other step only."""

        step = 0

        def retrieve(self, memory: Memory, n: int, batch: Batch, loss_rise: LossRise) -> Batch:
            self.step += 1
            return memory.sample(n if self.step % 2 else 0)

        def state_dict(self) -> dict[str, Any]:
            return {"step": self.step}

        def load_state_dict(self, state: Any) -> None:
            self.step = state["step"]

    given = EveryOther()
    learner, fresh = (build("er-ace", parts={"retrieval": given}) for _ in range(2))
    stream = open_stream()
    train(learner, stream, 3)
    assert given.step == 0
    assert_resumes(learner, fresh, stream.batch(3))


def test_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RETRIEVALS, "_components", dict(RETRIEVALS._components))
    load_plugin(EXAMPLE)
    learner, stream = build("er", retrieval="other-classes", memory_batch=5), open_stream()
    train(learner, stream, 4)
    batch = stream.batch(4)
    retrieved = learner.retrieve(batch)
    assert 0 < len(retrieved) <= 5
    assert not bool(torch.isin(retrieved.y, batch.y).any())


class Greedy(Retrieval):
    def retrieve(self, memory: Memory, n: int, batch: Batch, loss_rise: LossRise) -> Batch:
        return memory.sample(n + 1)


class Overfull(Reservoir):
    def __len__(self) -> int:
        return min(self.seen, self.capacity + 3)


def test_too_many_samples_raise() -> None:
    learner = build("er", parts={"retrieval": Greedy()}, memory_batch=4)
    learner.observe(open_stream().batch(0))
    with pytest.raises(SteradError, match="Greedy returned 5 samples where 4 were requested"):
        learner.observe(open_stream().batch(1))
    for method in ("er", "gdumb"):
        learner = build(method, parts={"memory": Overfull(7)})
        with pytest.raises(SteradError, match="Overfull holds 10 samples and its capacity is 7"):
            learner.observe(open_stream().batch(0))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"retrieval": "mri"}, "unknown retrieval 'mri': did you mean 'mir'"),
        ({"mir_candidates": 90}, "mir_candidates=90 has no effect on retrieval=random"),
        ({"retrieval": "mir", "mir_candidates": 64}, "64 for memory_batch 64 leave nothing"),
    ],
)
def test_wrong_fields_raise(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build("er", **fields)
