"""Options of published surveys against literal transcriptions: passes, tricks, unit logits."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import Replay
from sterad.methods.base.review import shuffled_slots
from sterad.methods.er import ER
from sterad.methods.scr import SCR
from sterad.streams import Boundary
from tests.methods.scaffold import (
    assert_networks_close,
    assert_resumes,
    build,
    literal_cross_entropy,
    open_stream,
    random_images,
    take_step,
    train,
)

PLAIN: dict[str, Any] = {"augmentation": "none", "momentum": 0.0, "weight_decay": 0.0, "lr": 0.1}


def among(logits: Tensor, labels: list[int], classes: list[int]) -> Tensor:
    """Return the literal cross-entropy of a softmax over some classes, one row at a time."""
    return literal_cross_entropy(logits[:, classes], [classes.index(label) for label in labels])


def descend(reference: Replay, loss: Tensor, lr: float = 0.1) -> None:
    """Take a step of plain gradient descent by hand."""
    weights = [w for w in reference.network.parameters() if w.requires_grad]
    for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
        weight.data -= lr * gradient


@pytest.mark.parametrize("kind", ["all", "seen", "batch"])
def test_separate_passes_equal_the_literal_algorithm(kind: str) -> None:
    stream = open_stream(per_class=30)
    learner = build(ER, memory_batch=4, passes="separate", loss_classes=kind, **PLAIN)
    for step in range(3):
        reference, new = copy.deepcopy(learner), stream.batch(step)
        loss = take_step(learner, new)  # the first batch, too
        known = sorted({*reference.seen.tolist(), *new.y.tolist()})
        stored = reference.memory.sample(4)
        losses = []
        for x, y in [(new.x, new.y.tolist()), (stored.x, stored.y.tolist())]:
            if y:
                classes = {"all": list(range(6)), "seen": known, "batch": sorted({*y})}[kind]
                losses.append(among(reference.network(x), y, classes))
        assert len(losses) == (1 if step == 0 else 2)
        descend(reference, sum(losses, torch.zeros(())))
        assert loss.item() == pytest.approx(sum(one.item() for one in losses), rel=1e-5)
        assert_networks_close(learner.network, reference.network, 1e-5, buffer_atol=1e-6)


def test_a_joint_pass_has_one_softmax_over_the_classes_of_both_batches() -> None:
    stream = open_stream(per_class=30)
    learner = build(ER, memory_batch=4, loss_classes="batch", **PLAIN)
    learner.observe(stream.batch(0))
    reference, new = copy.deepcopy(learner), stream.batch(1)
    loss = take_step(learner, new)
    stored = reference.memory.sample(4)
    labels = [*stored.y.tolist(), *new.y.tolist()]
    expected = among(reference.network(torch.cat([stored.x, new.x])), labels, sorted({*labels}))
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_seen_classes_alone_equal_a_head_that_has_no_others() -> None:
    stream = open_stream(per_class=30)
    learner = build(ER, loss_classes="seen", **PLAIN)
    weight = learner.network.get_parameter("head.weight")
    before = weight.detach().clone()
    train(learner, stream, stop=5)
    unseen = [label for label in range(6) if label not in learner.seen.tolist()]
    assert unseen, "the first task has three of six classes"
    assert torch.equal(weight[unseen], before[unseen])
    assert not torch.equal(weight[learner.seen], before[learner.seen])


def test_recorded_losses_are_those_of_both_passes() -> None:
    stream, learner = open_stream(per_class=30), build(ER, memory_batch=4, passes="separate")
    learner.observe(stream.batch(0))
    learner.sample_losses = []
    loss = take_step(learner, stream.batch(1))
    ((losses, labels),) = learner.sample_losses
    assert losses.shape == labels.shape == (14,)
    assert loss.item() == pytest.approx(float(losses[:10].mean() + losses[10:].mean()), rel=1e-5)


@pytest.mark.parametrize("method", ["er", "scr"])
def test_a_review_is_one_pass_over_the_memory_with_a_tenth_of_the_gradient(method: str) -> None:
    stream = open_stream(per_class=30)
    learner = build(
        method, memory=11, memory_batch=4, review=True, problem={"announced": True}, **PLAIN
    )
    train(learner, stream, stop=3)
    reference = copy.deepcopy(learner)
    learner.boundary(Boundary(task=0, step=3))
    order = torch.randperm(11, generator=reference.rng["review"])
    for slots in (order[:4], order[4:8]):  # three images remain: no batch
        stored = reference.memory.read(slots)  # type: ignore[attr-defined]
        if method == "er":
            loss = literal_cross_entropy(reference.network(stored.x), stored.y.tolist())
        else:
            z = torch.nn.functional.normalize(reference.network(stored.x))
            loss = literal_contrast(z, stored.y.tolist(), 0.07)
        descend(reference, loss / 10)
    assert_networks_close(learner.network, reference.network, 1e-5, buffer_atol=1e-6)
    assert learner.engine.images == reference.engine.images + 8


def literal_contrast(z: Tensor, labels: list[int], temperature: float) -> Tensor:
    """Return the supervised contrastive loss, one anchor with a positive at a time."""
    losses = []
    for i, label in enumerate(labels):
        others = [j for j in range(len(labels)) if j != i]
        positives = [j for j in others if labels[j] == label]
        if positives:
            total = torch.stack([(z[i] @ z[j] / temperature).exp() for j in others]).sum().log()
            terms = [z[i] @ z[j] / temperature - total for j in positives]
            losses.append(-torch.stack(terms).mean())
    return torch.stack(losses).mean()


def test_a_review_needs_no_announced_boundaries() -> None:
    stream = open_stream(per_class=60)
    learner = build(ER, memory_batch=4, review=True, **PLAIN)
    assert learner.tasks is not None
    assert learner.tasks.detector is not None
    learner.tasks.detector.lag = 5
    expected = 0
    for step in range(len(stream)):
        finished = learner.tasks.finished
        stored = len(learner.memory)
        learner.observe(stream.batch(step))
        expected += stored // 4 * 4 if learner.tasks.finished > finished else 0
    assert learner.tasks.finished == 1
    train_images = 10 * len(stream) - 10 + 4 * (len(stream) - 1)
    assert learner.engine.images == train_images + expected


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (ER, {"passes": "separate", "loss_classes": "batch", "review": True}),
        (SCR, {"review": True, "head_width": 7, "classifier": "nearest-unit-mean"}),
        ("agem", {"unit_logits": True}),
        ("dvc", {"unit_logits": True}),
        ("finetune", {"unit_logits": True}),
        ("gdumb", {"unit_logits": True, "epochs": 1}),
    ],
)
def test_resumes_bit_for_bit(method: Any, options: dict[str, Any]) -> None:
    stream = open_stream(per_class=20)
    learner, fresh = (build(method, problem={"announced": True}, **options) for _ in "ab")
    train(learner, stream, stop=7)
    assert_resumes(learner, fresh, stream.batch(7), stream.batch(8))
    for one in (learner, fresh):
        one.boundary(Boundary(task=1, step=9))
    assert_resumes(learner, fresh, stream.batch(9))


@pytest.mark.parametrize("method", ["agem", "dvc", "finetune"])
def test_unit_logits_are_logits_of_length_one(method: str) -> None:
    batch = open_stream(per_class=20).batch(0)
    learner = build(method, unit_logits=True, augmentation="none")
    z = learner.network(learner.engine.to_device(batch.x))
    z = z / z.square().sum(1, keepdim=True).sqrt()
    expected = literal_cross_entropy(z, batch.y.tolist())
    if method != "dvc":
        assert take_step(learner, batch).item() == pytest.approx(expected.item(), rel=1e-5)
    else:  # both views are equal here
        q = learner.qnet(z, z)  # type: ignore[attr-defined]
        p, joint = z.softmax(1), q.softmax(1)
        entropies = [-(m := one.mean(0)).mul(m.log()).sum() for one in (p, p, joint)]
        # One pass of both views has the batch statistics of one view.
        expected = expected - sum(entropies, torch.zeros(())) / 3 + 4 * (joint - p).abs().mean()
        assert take_step(learner, batch).item() == pytest.approx(expected.item(), rel=1e-4)
    scores, _ = learner.immediate_scores(batch.x)
    assert float(scores.square().sum(1).max()) <= 1 + 1e-5


def test_the_hidden_width_of_an_mlp_head() -> None:
    learner = build(SCR, head_width=7, projection=5)
    shapes = [tuple(weight.shape) for weight in learner.network.head.parameters()]
    assert shapes == [(7, 16), (7,), (5, 7), (5,)]


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("er", {"head_width": 7}, "head_width=7 has no effect on head=linear: use head=mlp"),
        ("finetune", {"review": True}, "review=true trains on all images of the memory"),
        ("gdumb", {"review": True}, "takes no steps on the stream"),
        ("er", {"passes": "both"}, "passes 'both' is unknown: choose joint or separate"),
    ],
)
def test_options_without_effect_raise(method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build(method, **options)


def test_shuffled_slots_leave_out_a_partial_batch() -> None:
    rng = torch.Generator().manual_seed(0)
    batches = list(shuffled_slots(11, 4, rng))
    assert [len(one) for one in batches] == [4, 4]
    assert len({*torch.cat(batches).tolist()}) == 8
    assert [len(one) for one in shuffled_slots(3, 4, rng)] == [3]


def test_unit_means_predict_by_the_largest_cosine() -> None:
    from sterad.classifiers import NearestUnitMean

    h = torch.nn.functional.normalize(random_images(40, shape=(5,)) - 0.3)
    labels = torch.arange(40) % 3 * 2
    fitted = NearestUnitMean.fit([(h[:30], labels[:30]), (h[30:], labels[30:])])
    x = torch.nn.functional.normalize(random_images(20, seed=1, shape=(5,)) - 0.3)
    for row, scores in zip(x, fitted.scores(x), strict=True):
        means = [h[labels == label].sum(0) for label in (0, 2, 4)]
        cosines = [float(row @ m / m.norm()) for m in means]
        assert int(scores.argmax()) == cosines.index(max(cosines))
    assert fitted.labels.tolist() == [0, 2, 4]
