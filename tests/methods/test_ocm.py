"""OCM: whole steps of the first and later tasks against a literal transcription of section 7.9."""

import copy
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.ocm import OCM, OCMConfig
from sterad.streams import Batch, Boundary, Clear, Stream
from sterad.views.geometry import sixteenfold


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=10, test_per_class=4).load()
    return Clear(tasks=2, batch_size=5).open(data, seed=0)


def learner(classes: int | None = 6, announced: bool = True, **fields: Any) -> OCM:
    made = build_learner(
        METHODS["ocm"],
        OCMConfig(**({"memory_batch": 4, "projection": 6} | fields)),
        Problem((1, 8, 8), classes, memory=30, width=2, seed=3, announced=announced),
    )
    assert isinstance(made, OCM)
    return made


def literal_nt(S: Tensor, labels: list[int], paired: bool) -> Tensor:
    n, epsilon = len(labels), 1e-8
    E = torch.exp((S - S.detach().max(dim=1, keepdim=True).values) / 0.07)
    if paired:
        E = E * (1 - torch.eye(n))
    cost = -torch.log(E / (E.sum(dim=1, keepdim=True) + epsilon) + epsilon)
    same = torch.tensor([[float(a == b) for b in labels] for a in labels])
    weighted = (same / (same.sum(dim=1, keepdim=True) + epsilon) * cost).sum() / n
    if not paired:
        return weighted
    half = n // 2
    pairs = sum(cost[i, i + half] + cost[i + half, i] for i in range(half))
    return pairs / n + 2 * weighted


def labels_of(y: Tensor, times: int) -> list[int]:
    return [label + 1000 * i for i in range(16) for label in y.tolist()] * times


def literal_features(network: torch.nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    f = network.get_submodule("encoder")(x)
    u = network.get_submodule("representation")(f)
    f, u = (v / (v.norm(dim=1, keepdim=True) + 1e-8) for v in (f, u))
    return f, u


def literal_similarity(made: OCM, f: Tensor, u: Tensor) -> Tensor:
    start = int(torch.randint(16 - 6 + 1, (1,), generator=made.rng["slices"]))
    return u @ f[:, start : start + 6].T + u @ u.T


def compare(made: OCM, twin: OCM, loss: Tensor | None, literal: Tensor) -> None:
    for name, rng in twin.rng.items():
        assert torch.equal(rng.get_state(), made.rng[name].get_state()), f"other {name} were drawn"
    twin.engine.optimizer.zero_grad()
    literal.backward()
    assert loss is not None
    assert loss.item() == pytest.approx(literal.item(), rel=1e-4)
    twin.engine.optimizer.step()
    for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
        # Adam moves by the sign of a gradient at first, and tiny ones have rounding for a sign.
        assert (ours - theirs).abs().mean() < 1e-4
        assert (ours - theirs).abs().max() <= 2.1e-3
    for mine, other in zip(made.network.buffers(), twin.network.buffers(), strict=True):
        assert torch.allclose(mine.float(), other.float(), atol=1e-5)


def test_one_step_of_the_first_task() -> None:
    made, feed = learner(), stream()
    made.observe(feed.batch(0))
    twin, counted = copy.deepcopy(made), made.images
    batch = feed.batch(1)
    loss = made.observe(batch)
    x = sixteenfold(batch.x)
    f, u = literal_features(twin.network, torch.cat([x, twin.augmentation(x, twin.rng["views"])]))
    literal = literal_nt(literal_similarity(twin, f, u), labels_of(batch.y, 2), paired=True)
    logits = twin.network(twin.augmentation(batch.x, twin.rng["views"]))
    literal = literal + F.cross_entropy(logits, batch.y)
    compare(made, twin, loss, literal)
    assert made.images - counted == 32 * 5 + 5


def test_one_step_of_a_later_task() -> None:
    made, feed = learner(), stream()
    for step in range(6):
        made.observe(feed.batch(step))
    made.boundary(Boundary(task=0, step=6))
    old = made.seen.tolist()
    made.observe(feed.batch(6))
    assert made.snapshot is not None
    with torch.no_grad():  # so that the network differs from its snapshot, and views matter
        made.snapshot.network.get_submodule("head").get_parameter("weight").mul_(20)
    twin, counted = copy.deepcopy(made), made.images
    assert twin.snapshot is not None
    assert not twin.snapshot.network.training
    frozen = copy.deepcopy(twin.snapshot.network.state_dict())
    batch = feed.batch(7)
    loss = made.observe(batch)

    kept = twin.memory.sample(4)
    stream_x, memory_x = sixteenfold(batch.x), sixteenfold(kept.x)
    shown = [torch.cat([x, twin.augmentation(x, twin.rng["views"])]) for x in (stream_x, memory_x)]
    f, u = literal_features(twin.network, torch.cat(shown))
    cut = 32 * 5
    S_stream = literal_similarity(twin, f[:cut], u[:cut])
    S_memory = literal_similarity(twin, f[cut:], u[cut:])
    with torch.no_grad():
        _, before = literal_features(twin.snapshot.network, memory_x)
    view = twin.augmentation(kept.x, twin.rng["views"])
    logits = twin.network(view)
    with torch.no_grad():
        taught = twin.snapshot.network(view)
    literal = (
        literal_nt(S_memory, labels_of(kept.y, 2), paired=False)
        + literal_nt(S_stream, labels_of(batch.y, 2), paired=True)
        + literal_nt(u[cut : cut + 64] @ before.T, labels_of(kept.y, 1), paired=False)
        + F.cross_entropy(logits, kept.y)
        + ((logits[:, old] - taught[:, old]) ** 2).mean()
    )
    compare(made, twin, loss, literal)
    assert made.images - counted == 32 * (5 + 4) + 4 + 16 * 4 + 4
    now = made.snapshot.network.state_dict()
    assert all(torch.equal(frozen[name], now[name]) for name in frozen), "the snapshot has moved"
    assert all(p.grad is None for p in made.snapshot.network.parameters())


def test_images_per_step_at_the_released_settings() -> None:
    made = build_learner(
        METHODS["ocm"], OCMConfig(), Problem((1, 8, 8), 4, 100, width=1, announced=True)
    )
    x = torch.rand(100, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    made.observe(Batch(x[:10], torch.arange(10) % 2))
    assert made.images == 320 + 10
    made.memory.update(Batch(x, torch.arange(100) % 2))  # type: ignore[attr-defined]
    made.boundary(Boundary(task=0, step=1))
    made.observe(Batch(x[:10], torch.arange(10) % 4))
    assert made.images == 330 + (2368 + 64) + (1024 + 64)


def test_the_released_settings_are_the_defaults() -> None:
    config = OCMConfig()
    assert (config.optimizer, config.lr, config.weight_decay) == ("adam", 1e-3, 1e-4)
    assert (config.augmentation, config.head, config.memory_batch) == ("full", "linear", 64)
    assert (config.projection, config.temperature, config.boundaries) == (128, 0.07, "auto")
    assert learner().engine.optimizer.param_groups[0]["betas"] == (0.9, 0.99)


def test_a_detected_task_ends_before_its_new_class_is_seen() -> None:
    made = learner(announced=False, detection_lag=2)
    x = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    for label in (0, 1, 1):
        made.observe(Batch(x, torch.full((4,), label)))
        assert made.snapshot is None
    before = copy.deepcopy(made.network.state_dict())
    made.observe(Batch(x, torch.full((4,), 5)))
    assert made.snapshot is not None
    assert made.old.tolist() == [0, 1]
    taken = made.snapshot.network.state_dict()
    assert all(torch.equal(before[name], taken[name]) for name in before)
    made.observe(Batch(x, torch.full((4,), 2)))  # absorbed within the lag
    assert made.old.tolist() == [0, 1], "old classes change with the snapshot and not without"


def test_the_heads_grow_also_after_the_snapshot_and_go_on_from_a_saved_state() -> None:
    made, loaded = learner(None), learner(None)
    x = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    made.observe(Batch(x, torch.tensor([0, 1, 0, 1, 0, 1])))
    made.boundary(Boundary(task=0, step=1))
    made.observe(Batch(x, torch.tensor([4, 5, 4, 5, 4, 5])))
    assert made.network.outputs == 6
    loaded.load_state_dict(made.state_dict())
    assert loaded.old.tolist() == [0, 1]
    again = Batch(x, torch.tensor([6, 5, 7, 5, 4, 5]))
    first, second = made.observe(again), loaded.observe(again)
    assert first is not None
    assert second is not None
    assert torch.equal(first, second)
    assert math.isfinite(first.item())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"temperature": 0.0}, r"temperature 0.0 is out of range: give a number in \(0, 1e"),
        ({"projection": 0}, "projection 0 is out of range: give an integer from 1 to 65,536$"),
        ({"views": 3}, "views 3"),
        ({"boundaries": "announced"}, "announces none"),
    ],
)
def test_bad_numbers_are_refused_in_words(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SteradError, match=said):
        learner(announced=False, **fields)


def test_vectors_cannot_be_rotated() -> None:
    with pytest.raises(SteradError, match="rotates images"):
        build_learner(METHODS["ocm"], OCMConfig(), Problem((8,), 4, 10, encoder="mlp", width=2))
