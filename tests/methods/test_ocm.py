"""OCM: whole steps of the first and of later tasks against a literal transcription."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import Replay
from sterad.methods.ocm import OCM, OCMConfig
from sterad.streams import Batch, Boundary
from sterad.views.geometry import sixteenfold
from tests.methods.scaffold import (
    assert_resumes,
    build,
    count_images,
    open_stream,
    random_images,
    take_step,
)


def build_ocm(classes: int | None = 6, announced: bool = True, **fields: Any) -> OCM:
    fields = {"memory_batch": 4, "projection": 6} | fields
    return build(OCM, classes, problem={"announced": announced}, **fields)


def literal_nt(S: Tensor, labels: list[int], paired: bool) -> Tensor:
    """Return the NT loss of similarities S: (n, n); paired: with the two views of an image."""
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


def sixteenfold_labels(y: Tensor, views: int) -> list[int]:
    """Return a class of its own for each of the 16 rotations and flips of a class."""
    return [label + 1000 * i for i in range(16) for label in y.tolist()] * views


def literal_features(network: torch.nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    f = network.get_submodule("encoder")(x)
    u = network.get_submodule("representation")(f)
    f, u = (v / (v.norm(dim=1, keepdim=True) + 1e-8) for v in (f, u))
    return f, u


def literal_similarity(learner: OCM, f: Tensor, u: Tensor) -> Tensor:
    start = int(torch.randint(16 - 6 + 1, (1,), generator=learner.rng["slices"]))
    return u @ f[:, start : start + 6].T + u @ u.T


def compare_step(learner: Replay, reference: Replay, loss: Tensor, expected: Tensor) -> None:
    """Take the step of `reference` and require equal draws, close losses and close networks."""
    for name, rng in reference.rng.items():
        assert torch.equal(rng.get_state(), learner.rng[name].get_state()), name
    reference.engine.optimizer.zero_grad()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    reference.engine.optimizer.step()
    pairs = zip(learner.network.parameters(), reference.network.parameters(), strict=True)
    for value, wanted in pairs:
        # Adam's first steps follow the sign of a gradient, which is rounding for tiny ones.
        assert (value - wanted).abs().mean() < 1e-4
        assert (value - wanted).abs().max() <= 2.1e-3
    for buffer, other in zip(learner.network.buffers(), reference.network.buffers(), strict=True):
        assert torch.allclose(buffer.float(), other.float(), atol=1e-5)


def test_one_step_of_the_first_task_equals_the_literal_algorithm() -> None:
    learner, stream = build_ocm(), open_stream(batch_size=5)
    learner.observe(stream.batch(0))
    reference, images, batch = copy.deepcopy(learner), learner.images, stream.batch(1)
    loss = take_step(learner, batch)
    x = sixteenfold(batch.x)
    views = torch.cat([x, reference.augmentation(x, reference.rng["views"])])
    f, u = literal_features(reference.network, views)
    S = literal_similarity(reference, f, u)
    expected = literal_nt(S, sixteenfold_labels(batch.y, 2), paired=True)
    logits = reference.network(reference.augmentation(batch.x, reference.rng["views"]))
    expected = expected + F.cross_entropy(logits, batch.y)
    compare_step(learner, reference, loss, expected)
    assert learner.images - images == 32 * 5 + 5


def test_one_step_of_a_later_task_equals_the_literal_algorithm() -> None:
    learner, stream = build_ocm(), open_stream(batch_size=5)
    for step in range(6):
        learner.observe(stream.batch(step))
    learner.boundary(Boundary(task=0, step=6))
    old_classes = learner.seen.tolist()
    learner.observe(stream.batch(6))
    assert learner.snapshot is not None
    with torch.no_grad():  # the network must differ from its snapshot for the views to matter
        learner.snapshot.network.get_submodule("head").get_parameter("weight").mul_(20)
    reference, images, batch = copy.deepcopy(learner), learner.images, stream.batch(7)
    assert reference.snapshot is not None
    snapshot = reference.snapshot.network
    assert not snapshot.training
    before = copy.deepcopy(snapshot.state_dict())
    loss = take_step(learner, batch)

    stored, views = reference.memory.sample(4), reference.rng["views"]
    stream_x, memory_x = sixteenfold(batch.x), sixteenfold(stored.x)
    inputs = [torch.cat([x, reference.augmentation(x, views)]) for x in (stream_x, memory_x)]
    f, u = literal_features(reference.network, torch.cat(inputs))
    cut = 32 * 5
    S_stream = literal_similarity(reference, f[:cut], u[:cut])
    S_memory = literal_similarity(reference, f[cut:], u[cut:])
    with torch.no_grad():
        _, old_u = literal_features(snapshot, memory_x)
    view = reference.augmentation(stored.x, views)
    logits = reference.network(view)
    with torch.no_grad():
        old_logits = snapshot(view)
    expected = (
        literal_nt(S_memory, sixteenfold_labels(stored.y, 2), paired=False)
        + literal_nt(S_stream, sixteenfold_labels(batch.y, 2), paired=True)
        + literal_nt(u[cut : cut + 64] @ old_u.T, sixteenfold_labels(stored.y, 1), paired=False)
        + F.cross_entropy(logits, stored.y)
        + ((logits[:, old_classes] - old_logits[:, old_classes]) ** 2).mean()
    )
    compare_step(learner, reference, loss, expected)
    assert learner.images - images == 32 * (5 + 4) + 4 + 16 * 4 + 4
    after = learner.snapshot.network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before), "the snapshot changed"
    assert all(p.grad is None for p in learner.snapshot.network.parameters())


def test_images_per_step_with_default_settings() -> None:
    learner = build(OCM, classes=4, memory=100, problem={"width": 1, "announced": True})
    x = random_images(100)
    assert count_images(learner, Batch(x[:10], torch.arange(10) % 2)) == 320 + 10
    learner.memory.update(Batch(x, torch.arange(100) % 2))
    learner.boundary(Boundary(task=0, step=1))
    images = count_images(learner, Batch(x[:10], torch.arange(10) % 4))
    assert images == (2368 + 64) + (1024 + 64)


def test_default_settings_are_those_of_the_released_code() -> None:
    config = OCMConfig()
    assert (config.optimizer, config.lr, config.weight_decay) == ("adam", 1e-3, 1e-4)
    assert (config.augmentation, config.head, config.memory_batch) == ("full", "linear", 64)
    assert (config.projection, config.temperature, config.boundaries) == (128, 0.07, "auto")
    assert build_ocm().engine.optimizer.param_groups[0]["betas"] == (0.9, 0.99)


def test_a_detected_task_ends_before_its_new_class_is_seen() -> None:
    learner, x = build_ocm(announced=False, detection_lag=2), random_images(4)
    for label in (0, 1, 1):
        learner.observe(Batch(x, torch.full((4,), label)))
        assert learner.snapshot is None
    before = copy.deepcopy(learner.network.state_dict())
    learner.observe(Batch(x, torch.full((4,), 5)))
    assert learner.snapshot is not None
    assert learner.old.tolist() == [0, 1]
    snapshot = learner.snapshot.network.state_dict()
    assert all(torch.equal(before[name], snapshot[name]) for name in before)
    learner.observe(Batch(x, torch.full((4,), 2)))  # within the lag: no new task
    assert learner.old.tolist() == [0, 1], "old classes change only with the snapshot"


def test_a_learner_widened_after_the_snapshot_resumes_bit_for_bit() -> None:
    learner, fresh, x = build_ocm(None), build_ocm(None), random_images(6)
    learner.observe(Batch(x, torch.tensor([0, 1, 0, 1, 0, 1])))
    learner.boundary(Boundary(task=0, step=1))
    learner.observe(Batch(x, torch.tensor([4, 5, 4, 5, 4, 5])))
    assert learner.network.outputs == 6
    batches = [Batch(x, torch.tensor(labels)) for labels in ([6, 5, 7, 5, 4, 5], [0, 5] * 3)]
    assert_resumes(learner, fresh, *batches)
    assert fresh.old.tolist() == [0, 1]
    assert bool(take_step(learner, batches[0]).isfinite())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": 0.0}, r"temperature 0.0 is out of range: give a number in \(0, 1e"),
        ({"projection": 0}, "projection 0 is out of range: give an integer from 1 to 65,536$"),
        ({"views": 3}, "views 3"),
        ({"boundaries": "announced"}, "announces none"),
    ],
)
def test_invalid_fields_raise(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build_ocm(announced=False, **fields)


def test_feature_vectors_raise() -> None:
    with pytest.raises(SteradError, match="rotates images"):
        build(OCM, problem={"input_shape": (8,), "encoder": "mlp"})
