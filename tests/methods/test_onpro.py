"""OnPro: whole steps against a literal transcription, and its mixtures."""

import copy
from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.onpro import OnPro, OnProConfig
from sterad.streams import Batch, Boundary
from sterad.testing import check_method
from sterad.views.geometry import sixteenfold
from tests.methods.scaffold import (
    assert_resumes,
    build,
    count_images,
    open_stream,
    random_images,
    take_step,
    train,
)
from tests.methods.test_ocm import (
    compare_step,
    literal_features,
    literal_nt,
    sixteenfold_labels,
)

STREAM = open_stream(classes=6, per_class=10, batch_size=5)  # two tasks of six batches


def build_onpro(classes: int | None = 6, announced: bool = True, **fields: Any) -> OnPro:
    values: dict[str, Any] = {"memory_batch": 6, "projection": 6} | fields
    return build(OnPro, classes, problem={"announced": announced}, **values)


def literal_prototypes(learner: OnPro, mixed: Batch, u: Tensor) -> tuple[Tensor, dict[int, Tensor]]:
    """Return the loss, row by row, and the prototypes of the first view."""
    means: list[dict[int, Tensor]] = [{}, {}]
    share = mixed.extra["share"].tolist()
    members = [*zip(mixed.y.tolist(), mixed.extra["other"].tolist(), share, strict=True)]
    weights = [{a: 0.0, b: 0.0} for a, b, _ in members]
    for row, (a, b, s) in enumerate(members):
        weights[row][a] += 1 - s
        weights[row][b] += s
    for view, start in ((0, 0), (1, len(u) // 2)):
        for label in learner.seen.tolist():
            total = sum((w.get(label, 0.0) * u[start + row] for row, w in enumerate(weights)))
            if any(w.get(label, 0.0) for w in weights):
                assert isinstance(total, Tensor)
                means[view][label] = total / total.norm()
    rows = [(c, m) for one in means for c, m in one.items()]
    loss = torch.zeros(())
    for i, (label, row_mean) in enumerate(rows):
        scores = {j: (row_mean @ m / 0.5).exp() for j, (_, m) in enumerate(rows) if j != i}
        (positive,) = [scores[j] for j, (c, _) in enumerate(rows) if c == label and j != i]
        loss = loss - (positive / sum(scores.values())).log()
    return loss / len(rows), means[0]


def literal_mixture(batch: Batch) -> Batch:
    return Batch(batch.x, batch.y, {"other": batch.y, "share": torch.zeros(len(batch))})


def literal_similarity(learner: OnPro, f: Tensor, u: Tensor) -> Tensor:
    start = int(torch.randint(16 - 6 + 1, (1,), generator=learner.rng["slices"]))
    return u @ f[:, start : start + 6].T + u @ u.T


def test_one_step_of_the_first_task_equals_the_literal_algorithm() -> None:
    learner = build_onpro(similarity_weight=0.5)
    learner.observe(STREAM.batch(0))
    reference, images, batch = copy.deepcopy(learner), learner.images, STREAM.batch(1)
    loss = take_step(learner, batch)
    reference.see(batch)
    x = sixteenfold(batch.x)
    views = torch.cat([x, reference.augmentation(x, reference.rng["views"])])
    f, u = literal_features(reference.network, views)
    S = literal_similarity(reference, f, u)
    prototypes, _ = literal_prototypes(reference, literal_mixture(batch), u)
    logits = reference.network(reference.augmentation(batch.x, reference.rng["views"]))
    expected = literal_nt(S, sixteenfold_labels(batch.y, 2), paired=True) + prototypes
    compare_step(learner, reference, loss, expected + F.cross_entropy(logits, batch.y))
    assert learner.images - images == 32 * 5 + 5


def test_one_step_of_a_later_task_equals_the_literal_algorithm() -> None:
    learner = build_onpro(similarity_weight=0.5, random_share=0.5, mixing_probability=0.8)
    train(learner, STREAM, 8)
    reference, images, batch = copy.deepcopy(learner), learner.images, STREAM.batch(8)
    loss = take_step(learner, batch)
    reference.see(batch)
    mixed, views = reference.retrieve(batch), reference.rng["views"]
    share, other = mixed.extra["share"], mixed.extra["other"]
    assert len(mixed) == 6
    assert bool((share > 0).any())
    inputs = []
    for images_of in (batch.x, mixed.x):
        x = sixteenfold(images_of)
        inputs.append(torch.cat([x, reference.augmentation(x, views)]))
    f, u = literal_features(reference.network, torch.cat(inputs))
    cut = 32 * 5
    S_stream = 0.5 * literal_similarity(reference, f[:cut], u[:cut])
    S_memory = 0.5 * literal_similarity(reference, f[cut:], u[cut:])
    pairs = zip(mixed.y.tolist(), other.tolist(), share.tolist(), strict=True)
    names = [a if s == 0 or a == b else (i, "mixed") for i, (a, b, s) in enumerate(pairs)]
    codes = {name: index for index, name in enumerate(dict.fromkeys(names))}
    numbers = sixteenfold_labels(torch.tensor([codes[name] for name in names]), 2)
    new, _ = literal_prototypes(reference, literal_mixture(batch), u[:cut])
    seen, means = literal_prototypes(reference, mixed, u[cut:])
    logits = reference.network(reference.augmentation(mixed.x, views)).log_softmax(1)
    entropy = -sum(
        (1 - s) * row[a] + s * row[b]
        for row, a, b, s in zip(logits, mixed.y, other, share, strict=True)
    ) / len(mixed)
    expected = literal_nt(S_stream, sixteenfold_labels(batch.y, 2), paired=True) + entropy
    expected = expected + literal_nt(S_memory, numbers, paired=False) + new + seen
    compare_step(learner, reference, loss, expected)
    assert learner.images - images == 32 * (5 + 6) + 6
    for column, label in enumerate(learner.prototype_classes.tolist()):
        wanted = means.get(label, torch.zeros(6))
        assert torch.allclose(learner.prototypes[column], wanted, atol=1e-5)


def test_mixtures_are_of_stored_images_and_close_classes_are_mixed_most() -> None:
    learner = build_onpro(memory_batch=24, random_share=0.25, mixing_probability=1.0)
    x = random_images(30)
    learner.memory.update(Batch((x * 255).round() / 255, torch.arange(30) % 3))
    learner.boundary(Boundary(task=0, step=1))
    learner.seen = torch.arange(6)
    angles = torch.tensor([0.0, 0.3, 2.5])
    learner.prototypes = torch.stack([angles.cos(), angles.sin()], dim=1)
    learner.prototype_classes = torch.arange(3)
    (stored,) = learner.memory.everything()
    pairs = Counter[tuple[int, int]]()
    for _ in range(20):
        mixed = learner.retrieve(STREAM.batch(0))
        share = mixed.extra["share"]
        assert len(mixed) == 24
        assert float(share[:6].max()) <= 0.6
        pairs.update(zip(mixed.y[6:].tolist(), mixed.extra["other"][6:].tolist(), strict=True))
    means = learner.prototypes
    gaps = {(a, b): float((means[a] - means[b]).norm()) for a, b in ((0, 1), (0, 2), (1, 2))}
    odds = torch.tensor([1 / gap for gap in gaps.values()]).softmax(0)
    found = torch.tensor([pairs[pair] / 360 for pair in gaps])
    assert torch.allclose(found, odds, atol=0.08)
    for image, a, b, s in zip(mixed.x, mixed.y, mixed.extra["other"], share, strict=True):
        firsts, seconds = stored.x[stored.y == a], stored.x[stored.y == b]
        made = (1 - s) * firsts[:, None] + s * seconds[None]
        assert float((made - image).abs().amax(dim=(2, 3, 4)).min()) < 1e-5


def test_the_first_step_with_a_memory_mixes_nothing() -> None:
    learner = build_onpro(mixing_probability=1.0)
    train(learner, STREAM, 6)
    retrieved = learner.retrieve(STREAM.batch(6))
    assert len(retrieved) == 6
    assert not retrieved.extra["share"].any()
    assert count_images(learner, STREAM.batch(6)) == 32 * (5 + 6) + 6


def test_a_learner_that_was_widened_resumes_bit_for_bit() -> None:
    learner, fresh = (build_onpro(None, announced=False, detection_lag=3) for _ in range(2))
    train(learner, STREAM, 8)
    assert learner.tasks is not None
    assert learner.tasks.finished
    assert_resumes(learner, fresh, STREAM.batch(8), STREAM.batch(9))


def test_default_settings_are_those_published() -> None:
    config = OnProConfig()
    assert (config.optimizer, config.lr, config.weight_decay) == ("adam", 5e-4, 1e-4)
    assert (config.beta2, config.memory_batch, config.projection) == (0.99, 64, 128)
    assert (config.temperature, config.prototype_temperature) == (0.07, 0.5)
    assert (config.random_share, config.mixing_probability) == (0.9, 0.2)


def test_feature_vectors_raise() -> None:
    with pytest.raises(SteradError, match="onpro rotates images, and inputs"):
        build(OnPro, problem={"input_shape": (8,), "encoder": "mlp"})


@pytest.mark.slow
def test_onpro_with_a_teacher_and_many_mixtures_passes_the_contract() -> None:
    check_method("onpro", OnProConfig(teacher="ema", memory_batch=6, random_share=0.5))
