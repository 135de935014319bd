"""MOSE: whole steps against a literal transcription, its experts, and its predictions."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.mose import MOSE, ExpertNetwork, MOSEConfig
from sterad.streams import Batch
from sterad.testing import check_method
from tests.methods.scaffold import (
    assert_networks_close,
    assert_resumes,
    build,
    count_images,
    literal_expert,
    open_stream,
    take_step,
    train,
)

STREAM = open_stream(classes=6, per_class=10, batch_size=5)  # two tasks of six batches


def build_mose(classes: int | None = 6, announced: bool = True, **fields: Any) -> MOSE:
    values: dict[str, Any] = {"memory_batch": 16, "projection": 6, "optimizer": "sgd"} | fields
    values = {"momentum": 0.0} | values
    return build(MOSE, classes, 30, {"announced": announced}, **values)


def unit(rows: Tensor) -> Tensor:
    lengths: Tensor = rows.norm(dim=1, keepdim=True)
    return rows / lengths


def literal_fourfold(learner: MOSE, x: Tensor) -> Tensor:
    mirrored, half = torch.empty_like(x), x.shape[3] // 2
    for column in range(x.shape[3]):
        start = column // half * half
        mirrored[..., column] = x[..., start + half - 1 - (column - start)]
    both = torch.cat([x, mirrored])
    return torch.cat([both, learner.augmentation(both, learner.rng["views"])])


def literal_features(network: ExpertNetwork, x: Tensor) -> list[Tensor]:
    encoder: Any = network.encoder.last
    y, features = encoder.stem(x), []
    for index, stage in enumerate(encoder.stages):
        y = stage(y)
        if index < 3:
            features.append(literal_expert(network.encoder.experts.experts[index], y))
    return [*features, y.mean(dim=(2, 3))]


def literal_contrast(z: Tensor, labels: list[int]) -> Tensor:
    total, anchors = torch.zeros(()), 0
    similarity = (z @ z.T / 0.07).exp()
    for i, label in enumerate(labels):
        others = [j for j in range(len(labels)) if j != i]
        positive = [j for j in others if labels[j] == label]
        sums = similarity[i, others].sum()
        total = total - sum((similarity[i, j] / sums).log() for j in positive) / len(positive)
        anchors += 1
    return total / anchors


def literal_entropy(logits: Tensor, labels: list[int], classes: list[int]) -> Tensor:
    rows = [row[classes].log_softmax(0) for row in logits]
    chosen = [r[classes.index(y)] for r, y in zip(rows, labels, strict=True)]
    return -torch.stack(chosen).mean()


def literal_loss(learner: MOSE, new: Batch, replayed: Batch | None) -> Tensor:
    """Return the loss, expert by expert."""
    network = learner.network
    assert isinstance(network, ExpertNetwork)
    inputs, n = [literal_fourfold(learner, new.x)], new.y.tolist() * 4
    q = [] if replayed is None else replayed.y.tolist() * 4
    if replayed is not None:
        inputs.append(literal_fourfold(learner, replayed.x))
    features = literal_features(network, torch.cat(inputs))
    loss, student = torch.zeros(()), unit(network.adapter(features[-1]))
    for index, h in enumerate(features):
        logits = [*network.stage_heads, network.head][index](h)
        loss = loss + literal_contrast(unit(network.projections[index](h)), n + q)
        loss = loss + literal_entropy(logits[: len(n)], n, learner.task_classes.tolist())
        if q:
            loss = loss + 2 * literal_entropy(logits[len(n) :], q, learner.seen.tolist())
        if index < len(features) - 1:
            loss = loss + ((student - unit(h.detach())) ** 2).sum().sqrt()
    return loss


@pytest.mark.parametrize("steps", [2, 9], ids=["first task", "later task"])
def test_one_step_equals_the_literal_algorithm(steps: int) -> None:
    learner = build_mose()
    train(learner, STREAM, steps)
    reference, batch = copy.deepcopy(learner), STREAM.batch(steps)
    images = count_images(learner, batch)
    reference.see(batch)
    retrieved = reference.retrieve(batch)
    current = retrieved.extra["task"] == reference.task
    new = Batch(
        torch.cat([batch.x, retrieved.x[current]]), torch.cat([batch.y, retrieved.y[current]])
    )
    replayed = None
    if reference.task:
        fresh = len(reference.seen) - len(reference.old)
        n = min(16 * fresh // len(reference.seen), 5)
        assert int(current.sum()) == 16 // 2 - 5
        assert int((~current).sum()) == 16 - n
        x, y = retrieved.x[~current], retrieved.y[~current]
        replayed = Batch(torch.cat([x, batch.x[:n]]), torch.cat([y, batch.y[:n]]))
    literal_loss(reference, new, replayed).backward()
    assert images == 4 * (len(new) + (0 if replayed is None else len(replayed)))
    with torch.no_grad():
        for weight in reference.network.parameters():
            assert weight.grad is not None
            weight.sub_(1e-3 * (weight.grad + 1e-4 * weight))
    assert_networks_close(learner.network, reference.network, atol=5e-6, buffer_atol=1e-5)


def test_predictions_are_the_nearest_means_of_all_experts() -> None:
    learner = build_mose()
    train(learner, STREAM, 8)
    learner.consolidate()
    x = STREAM.batch(3).x
    network = copy.deepcopy(learner.network).eval()
    assert isinstance(network, ExpertNetwork)
    with torch.no_grad():
        (stored,) = learner.memory.everything()
        known = [unit(h) for h in literal_features(network, stored.x)]
        queries = [unit(h) for h in literal_features(network, x)]
    labels = sorted(set(stored.y.tolist()))
    distances = torch.zeros(len(x), len(labels))
    for memory, query in zip(known, queries, strict=True):
        for column, label in enumerate(labels):
            mean = memory[stored.y == label].mean(dim=0)
            distances[:, column] += ((query - mean) ** 2).sum(dim=1) / len(known)
    expected = [labels[k] for k in distances.argmin(dim=1).tolist()]
    assert learner.predict(x).tolist() == expected
    scores, columns = learner.scores(x)
    gaps = scores[:, :1] - scores
    ratio = gaps / (distances - distances[:, :1]).masked_fill(distances == distances[:, :1], 1)
    assert columns.tolist() == labels
    assert torch.allclose(ratio[:, 1:], ratio[0, 1].expand_as(ratio[:, 1:]), rtol=1e-2)


def test_a_learner_that_grows_with_a_teacher_resumes_bit_for_bit() -> None:
    fields: dict[str, Any] = {"teacher": "ema", "predict_with": "average", "memory_batch": 8}
    learner, fresh = build_mose(None, **fields), build_mose(None, **fields)
    train(learner, STREAM, 7)
    assert_resumes(learner, fresh, STREAM.batch(7))
    widths = {head.out_features for head in [learner.network.head, *learner.network.stage_heads]}
    assert widths == {int(learner.seen[-1]) + 1}


def test_samples_of_detected_tasks_and_the_head_of_the_last_expert() -> None:
    learner = build_mose(None, announced=False, detection_lag=3, classifier="head")
    train(learner, STREAM, 8)
    assert learner.task >= 1
    assert bool(take_step(learner, STREAM.batch(8)).isfinite())
    assert set(learner.predict(STREAM.batch(0).x).tolist()) <= set(learner.seen.tolist())


def test_default_settings_are_those_published() -> None:
    config = MOSEConfig()
    assert (config.optimizer, config.lr, config.weight_decay) == ("adam", 1e-3, 1e-4)
    assert (config.projection, config.temperature, config.memory_batch) == (128, 0.07, 64)
    views: Any = build(MOSE).augmentation
    assert (views.flip, views.min_crop, views.gray_probability) == (False, 0.3, 0.25)


def test_encoders_without_stages_raise() -> None:
    with pytest.raises(SteradError, match="the encoder Flatten has no stages"):
        build(MOSE, problem={"encoder": "flatten"})
    learner = build(MOSE, problem={"encoder": "mlp", "input_shape": (9,)}, memory_batch=8)
    assert isinstance(learner.network, ExpertNetwork)
    assert learner.network.encoder.features == 2 * 16
    x = torch.rand(6, 9, generator=torch.Generator().manual_seed(0))
    for _ in range(2):
        learner.observe(Batch(x, torch.arange(6) % 2))


@pytest.mark.slow
def test_mose_with_a_teacher_and_review_passes_the_contract() -> None:
    check_method("mose", MOSEConfig(teacher="ema", review=True, memory_batch=8, projection=6))
