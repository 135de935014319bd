"""Preparatory classes: whole steps against literal ones, labels, combinations, refusals."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import EncoderOptions
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.search.equal_pixels import step_pixels
from sterad.methods import METHODS, Replay
from sterad.methods.base.preparatory import PreparatoryClasses
from sterad.streams import Batch
from sterad.testing import check_method
from tests.methods.scaffold import (
    assert_networks_close,
    assert_resumes,
    build,
    count_images,
    open_stream,
    random_images,
    take_step,
    train,
)

STREAM = open_stream(classes=12, per_class=5, tasks=3)
ON: dict[str, Any] = {"preparatory_classes": 2, "preparatory_images": 3, "memory_batch": 4}
SGD: dict[str, Any] = {"momentum": 0.0, "weight_decay": 0.0, "lr": 0.01}
SMALL: dict[str, dict[str, Any]] = {
    "agd-fd": {"views": 1, "projection": 64, "optimizer": "sgd"},
    "vmf-fd": {"views": 1, "projection": 64, "optimizer": "sgd"},
    "mkd": {"optimizer": "sgd"},
    "ccl-dc": {"optimizer": "sgd"},
}
VECTORS: dict[str, Any] = {"input_shape": (7,), "encoder": "mlp"}
HEADS = 40
"""Declared classes, so that heads have unused outputs."""


def make(method: str, classes: int | None = HEADS, **fields: Any) -> Replay:
    """Return a learner without steps."""
    problem = fields.pop("problem", None)
    return build(method, classes, 30, problem, **(SMALL.get(method, {}) | ON | fields))


def preparatory_of(learner: Replay) -> PreparatoryClasses:
    (one,) = (one for one in learner.additions if isinstance(one, PreparatoryClasses))
    return one


def used(learner: Replay) -> list[int]:
    """Return the labels of all preparatory classes."""
    return [label for labels in preparatory_of(learner).labels.values() for label in labels]


def turned(image: Tensor, turns: int) -> Tensor:
    """Return an image (c, n, n) after counterclockwise quarter turns, pixel by pixel."""
    for _ in range(turns):
        source, n = image, image.shape[1]
        image = torch.empty_like(source)
        for row in range(n):
            for column in range(n):
                image[:, n - 1 - column, row] = source[:, row, column]
    return image


def literal_rotations(learner: Replay, joined: Batch) -> tuple[Tensor, list[int]]:
    """Return the rotated images of the next step on `joined`, and their labels.

    Draws from the generators of `learner`, which is a copy after the views of its own loss.
    """
    known, rng = preparatory_of(learner).labels, learner.rng["preparatory"]
    present = sorted(set(joined.y.tolist()))
    seen = {*present, *learner.seen.tolist()}
    order = torch.randperm(len(present), generator=rng)
    drawn = [present[int(i)] for i in order[:2]]
    labels: dict[tuple[int, int], int] = {}
    taken = seen | {label for own in known.values() for label in own}
    for one in drawn:
        for place, turns in enumerate((2, 1, 3)):
            unused = max(label for label in range(learner.label_count) if label not in taken)
            labels[one, turns] = known[one][place] if one in known else unused
            taken.add(labels[one, turns])
    images, classes = [], []
    for one in drawn:
        rows = [i for i, y in enumerate(joined.y.tolist()) if y == one]
        order = torch.randperm(len(rows), generator=rng)
        for k in range(3):
            images.append(joined.x[rows[int(order[k % len(rows)])]])
            classes.append(one)
    views = learner.view(torch.stack(images))
    pairs = [(turns, i) for turns in (2, 1, 3) for i in range(len(views))]
    x = torch.stack([turned(views[i], turns) for turns, i in pairs])
    return x, [labels[classes[i], turns] for turns, i in pairs]


def literal_posterior(scores: Tensor, labels: list[int], classes: set[int]) -> Tensor:
    """Return minus the log posterior of each row among some classes."""
    rows = []
    for row, label in zip(scores, labels, strict=True):
        total = torch.stack([row[c].exp() for c in sorted(classes)]).sum()
        rows.append(total.log() - row[label])
    return torch.stack(rows)


def check_step(learner: Replay, literal: Any) -> None:
    """Compare the loss and the weights of the fourth step with literal ones."""
    train(learner, STREAM, 3)
    before, batch = copy.deepcopy(learner), STREAM.batch(3)
    joined = Batch.concatenate(copy.deepcopy(before.memory).sample(4), batch)
    expected = literal(before, joined)
    weights = [one for one in before.network.parameters() if one.requires_grad]
    gradients = torch.autograd.grad(expected, weights)
    assert torch.allclose(take_step(learner, batch), expected, rtol=1e-4)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.sub_(0.01 * gradient)
    assert_networks_close(learner.network, before.network, 2e-4)
    assert learner.other_labels is None


@pytest.mark.parametrize("directions", ["basis", "simplex", "orthonormal"])
@pytest.mark.parametrize("norm_all", [False, True])
def test_a_step_of_fixed_directions_equals_the_literal_one(directions: str, norm_all: bool) -> None:
    learner = make(
        "agd-fd", **SGD, directions=directions, norm_all=norm_all, preparatory_weight=0.7
    )

    def literal(before: Any, joined: Batch) -> Tensor:
        seen = {*before.seen.tolist(), *joined.y.tolist()}
        means = torch.eye(64) if before.fixed is None else before.fixed

        def scores(x: Tensor) -> Tensor:
            log_densities: Tensor = before.log_density(F.normalize(before.network(x)) @ means.T)
            return log_densities

        view = before.augmentation(joined.x, before.rng["views"])
        x, labels = literal_rotations(before, joined)
        among = set(labels) | (seen if norm_all else set(joined.y.tolist()))
        y = joined.y.tolist()
        own = torch.cat([literal_posterior(scores(one), y, among) for one in (view, joined.x)])
        return own.sum() + 0.7 * literal_posterior(scores(x), labels, among).sum()

    check_step(learner, literal)


@pytest.mark.parametrize("among", ["all", "seen", "batch"])
def test_a_step_of_er_equals_the_literal_one(among: str) -> None:
    def literal(before: Any, joined: Batch) -> Tensor:
        seen = {*before.seen.tolist(), *joined.y.tolist()}
        own = before.network(before.augmentation(joined.x, before.rng["views"]))
        x, labels = literal_rotations(before, joined)
        real = {"all": set(range(HEADS)), "seen": seen, "batch": set(joined.y.tolist())}[among]
        classes = real | set(labels)
        rotated = literal_posterior(before.network(x), labels, classes).mean()
        return literal_posterior(own, joined.y.tolist(), classes).mean() + rotated

    check_step(make("er", **SGD, loss_classes=among), literal)


def test_a_step_of_pcr_counts_preparatory_samples_too() -> None:
    def literal(before: Any, joined: Batch) -> Tensor:
        view = before.augmentation(joined.x, before.rng["views"])
        own = before.network(torch.cat([view, joined.x])) / 0.09
        x, labels = literal_rotations(before, joined)
        y, total = 2 * joined.y.tolist(), []
        for scores, mine, others in (
            (own, y, labels),
            (before.network(x) / 0.09, labels, joined.y.tolist()),
        ):
            rows = []
            for row, label in zip(scores, mine, strict=True):
                samples = torch.stack([row[one].exp() for one in [*mine, *others]])
                frequency = [*mine, *others].count(label)
                rows.append(samples.sum().log() - row[label] - torch.tensor(frequency).log())
            total.append(torch.stack(rows).mean())
        return total[0] + total[1]

    check_step(make("pcr", **SGD), literal)


def test_the_likelihood_only_pulls_to_unused_directions() -> None:
    def literal(before: Any, joined: Batch) -> Tensor:
        def pull(x: Tensor, labels: list[int]) -> Tensor:
            z = F.normalize(before.network(x))
            rows = zip(z, labels, strict=True)
            return -torch.stack([before.log_density(row[label]) for row, label in rows]).sum()

        view = before.augmentation(joined.x, before.rng["views"])
        own = pull(view, joined.y.tolist()) + pull(joined.x, joined.y.tolist())
        return own + pull(*literal_rotations(before, joined))

    check_step(make("vmf-fd", **SGD, objective="likelihood"), literal)


@pytest.mark.parametrize("method", ["er-ace", "derpp", "mkd", "ccl-dc", "pfc"])
def test_methods_over_all_outputs_add_the_cross_entropy_of_rotated_images(method: str) -> None:
    plain = make(method, **SGD, preparatory_classes=0, preparatory_images=4)
    learner = make(method, **SGD)
    train(plain, STREAM, 3)
    new, state = learner.state_dict(), copy.deepcopy(plain.state_dict())
    learner.load_state_dict(new | state | {"rng": new["rng"] | state["rng"]})
    before, batch = copy.deepcopy(learner), STREAM.batch(3)
    own = take_step(plain, batch)
    before.rng |= {name: copy.deepcopy(rng) for name, rng in plain.rng.items()}
    joined = Batch.concatenate(copy.deepcopy(learner.memory).sample(4), batch)
    x, labels = literal_rotations(before, joined)
    rows = before.network(x).chunk(before.network.members, dim=1)
    everything = set(range(HEADS))
    added = sum(literal_posterior(one, labels, everything).mean() for one in rows)
    assert torch.allclose(take_step(learner, batch), own + added, rtol=1e-4)


def test_a_label_stays_until_its_class_appears() -> None:
    learner = make("er", 9, problem={"seed": 0}, **SGD)
    one, x = preparatory_of(learner), random_images(6)
    for _ in range(4):
        learner.observe(Batch(x, torch.tensor([0, 0, 0, 1, 1, 1])))
    assert sorted(used(learner)) == [3, 4, 5, 6, 7, 8]
    kept = copy.deepcopy(one.labels)
    learner.observe(Batch(x, torch.tensor([0, 0, 1, 1, 1, 1])))
    assert one.labels == kept
    (holder,) = (k for k, labels in kept.items() if 4 in labels)
    learner.observe(Batch(x, torch.tensor([4, 4, 4, 4, 4, 4])))
    moved = [2 if label == 4 else label for label in kept[holder]]
    assert one.labels == kept | {holder: moved}
    learner.observe(Batch(x, torch.tensor([2, 2, 2, 5, 5, 5])))
    for labels in one.labels.values():
        assert not {0, 1, 2, 4, 5} & set(labels)
    assert len(one.labels) == 1
    assert len(used(learner)) == 3


def test_without_unused_labels_nothing_is_rotated() -> None:
    learner = make("er", 6)
    batch = Batch(random_images(10), torch.arange(10) % 6)
    learner.observe(batch)
    assert count_images(learner, batch) == 14
    assert not preparatory_of(learner).labels
    assert learner.other_labels is None


def test_unused_labels_are_never_those_of_seen_classes() -> None:
    learner = make("er", 12, problem={"seed": 5}, **SGD)
    one, rotated = preparatory_of(learner), 0
    for step in range(len(STREAM)):
        learner.observe(STREAM.batch(step))
        labels = used(learner)
        assert len(set(labels)) == len(labels)
        assert not set(labels) & set(learner.seen.tolist())
        assert set(one.drawn) <= set(one.labels) <= set(learner.seen.tolist())
        rotated += len(one.drawn)
    assert rotated > 0
    assert not one.labels, "all classes have appeared"


@pytest.mark.parametrize("directions", ["basis", "orthonormal"])
def test_an_open_label_set_grows_and_resumes_bit_for_bit(directions: str) -> None:
    fields = {"projection": 16, "directions": directions, "teacher": "ema"}
    learner, fresh = (make("agd-fd", None, **fields) for _ in range(2))
    train(learner, STREAM, 3)
    assert min(used(learner)) < 16
    learner.observe(Batch(random_images(8), torch.tensor([15, 15, 16, 16, 17, 17, 20, 20])))
    labels = used(learner)
    assert not {15, 16, 17, 20} & set(labels)
    assert max(labels) < 21
    assert_resumes(learner, fresh, *(STREAM.batch(step) for step in (3, 4)))
    assert preparatory_of(fresh).labels == preparatory_of(learner).labels


def test_a_simplex_has_a_vertex_more_than_dimensions() -> None:
    learner = make("agd-fd", 5, directions="simplex", projection=20)
    assert learner.label_count == 21
    train(learner, open_stream(classes=5, tasks=1), 3)
    assert min(used(learner)) > 5
    learner.consolidate()
    assert set(learner.predict(random_images(4)).tolist()) <= set(range(5))


@pytest.mark.parametrize(
    ("method", "fields", "images"),
    [
        ("agd-fd", {}, 2 * 14 + 18),
        ("agd-fd", {"teacher": "ema"}, 2 * 14 + 3 * 14 + 18),
        ("agd-fd", {"chain_views": 2}, 2 * 14 + 3 * 14 + 18),
        ("agd-fd", {"flatten_weight": 1.0}, 2 * 14 + 3 * 4 + 18),
        ("agd-fd", {"stage_weight": 1.0}, 2 * 14 + 18),
        ("agd-fd", {"raw_view": False}, 14 + 18),
        ("agd-fd", {"views": 0}, 14 + 18),
        ("agd-fd", {"augmentation": "none"}, 14 + 18),
        ("agd-fd", {"memory_iterations": 2}, 2 * (2 * 14 + 18)),
        ("agd-fd", {"directions": "learned", "classifier": "nearest-direction"}, 2 * 14 + 18),
        ("er", {"passes": "separate", "retrieval": "mir", "review": True}, 14 + 10 + 40 + 18),
        ("pfc", {"stage_weight": 1.0, "stage_distillation": 0.5}, 14 + 18),
        ("ccl-dc", {}, 2 * (5 * 14 + 18)),
        ("ccl-dc", {"flatten_weight": 1.0}, 2 * (5 * 14 + 3 * 4 + 18)),
    ],
)
def test_combinations_learn_and_cost_what_they_declare(
    method: str, fields: dict[str, Any], images: int
) -> None:
    learner = make(method, **fields)
    train(learner, STREAM, 3)
    counts = learner.engine.passes.forward_only.total()
    assert count_images(learner, STREAM.batch(3)) == images
    forward_only = learner.engine.passes.forward_only.total() - counts
    declared = type(learner).cost(learner.config, 10, 30, 60).step
    assert declared == pytest.approx(images - forward_only * 2 / 3)
    learner.consolidate()
    assert set(learner.predict(random_images(4)).tolist()) <= set(learner.seen.tolist())


def test_rotated_views_have_the_size_of_views() -> None:
    learner = make("agd-fd", view_size=6)
    train(learner, STREAM, 3)
    before = learner.engine.passes.trained.copy()
    learner.observe(STREAM.batch(3))
    added = learner.engine.passes.trained - before
    assert added == {(1, 6, 6): 14 + 18, (1, 8, 8): 14}


def test_a_frozen_encoder_stays_in_the_network() -> None:
    options = EncoderOptions(frozen=True)
    learner = make("agd-fd", augmentation="none", problem={"encoder_options": options})
    train(learner, STREAM, 3)
    assert count_images(learner, STREAM.batch(3)) == 14 + 18


def test_pixels_do_not_depend_on_what_is_drawn() -> None:
    config: dict[str, Any] = {
        "method": "agd-fd", "dataset": "synthetic", "classes": 30, "per_class": 4, "image_size": 8,
        "memory": 60, "views": 1, "preparatory_classes": 4,
    }  # fmt: skip
    pixels = [step_pixels(RunConfig.of(**config, memory_batch=n)) / 64 for n in (4, 5, 20)]
    assert pixels == [2 * (10 + n) + 48 for n in (4, 5, 20)]


@pytest.mark.parametrize(
    ("method", "fields", "message"),
    [
        ("scr", {}, "the loss of SCR is not over all outputs or fixed directions: use agd-fd"),
        ("gsa", {}, "the loss of GSA is not over"),
        ("mose", {}, "the loss of MOSE is not over"),
        ("onpro", {"memory_batch": 4}, "the loss of OnPro is not over"),
        ("dvc", {}, "the loss of DVC is not over"),
        ("agem", {}, "the loss of AGEM is not over"),
        ("gdumb", {}, "preparatory_classes=2 adds to the steps on the stream"),
        ("agd-fd", {"directions": "moving"}, "preparatory_classes, chain_views, flattening and n"),
        ("agd-fd", {"directions": "moving-mean"}, "directions=moving-mean exist for the classes"),
        ("agd-fd", {"problem": VECTORS}, r"square images by 90°, and the inputs have shape \(7,\)"),
        ("er", {"problem": {"input_shape": (1, 8, 9)}}, r"square images by 90°.*\(1, 8, 9\): crop"),
        ("er", {"classes": None}, "the head of ER starts with 1: declare 4 classes or more in adv"),
        ("pcr", {"classes": 3}, "the head of PCR starts with 3"),
        ("er", {"preparatory_classes": 0}, "preparatory_images=3 has no effect without prep"),
    ],
)
def test_what_has_no_unused_labels_is_refused(
    method: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(SteradError, match=message):
        make(method, **fields)


@pytest.mark.parametrize(
    "rows",
    [
        torch.zeros(1, 3, dtype=torch.int64),
        torch.zeros(1, 4),
        torch.tensor([[0, 7, 8, 8]]),
        torch.tensor([[0, 7, 8, 9], [0, 4, 5, 6]]),
        torch.tensor([[0, 7, 8, -1]]),
    ],
)
def test_a_damaged_state_is_refused(rows: Tensor) -> None:
    learner = make("agd-fd")
    state = learner.state_dict() | {"preparatory_classes": {"labels": rows}}
    with pytest.raises(ValueError, match="preparatory"):
        learner.load_state_dict(state)


def test_without_it_nothing_is_drawn_or_kept() -> None:
    learner = build("agd-fd")
    assert not learner.additions
    assert "preparatory" not in learner.rng
    assert "preparatory_classes" not in learner.state_dict()
    plain = RunConfig.of(method="agd-fd").id
    assert RunConfig.of(method="agd-fd", preparatory_classes=0).id == plain
    assert RunConfig.of(method="agd-fd", preparatory_classes=4).id != plain


@pytest.mark.slow
@pytest.mark.parametrize("method", ["agd-fd", "er", "er-ace", "derpp", "pcr", "mkd", "ccl-dc"])
def test_methods_with_preparatory_classes_pass_the_contract(method: str) -> None:
    fields = {"views": 1} if method == "agd-fd" else {}
    config = METHODS[method].Config(preparatory_classes=4, preparatory_images=2, **fields)
    check_method(method, config)


@pytest.mark.slow
def test_all_additions_together_pass_the_contract() -> None:
    fields: dict[str, Any] = {"teacher": "ema", "chain_views": 2, "flatten_weight": 1.0}
    fields |= {"stage_weight": 1.0, "preparatory_classes": 2, "views": 1, "review": True}
    check_method("agd-fd", METHODS["agd-fd"].Config(**fields))
