"""GDumb and joint training: store the stream, then train a new network on the memory."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from sterad.engine import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.memory import GreedyBalanced
from sterad.methods.base.from_scratch import FromScratch
from sterad.methods.gdumb import GDumb, GDumbConfig, restarting_cosine
from sterad.methods.joint import Joint, JointConfig
from sterad.seeds import generator
from sterad.sphere import LAWS
from sterad.sphere.projected_student_t import DEFAULT_DF
from sterad.streams import Batch
from sterad.testing.method import same
from tests.methods.scaffold import (
    assert_networks_close,
    build,
    open_stream,
    random_images,
    train,
)

BOTH = pytest.mark.parametrize("method", [GDumb, Joint])


def build_short(method: type[FromScratch], classes: int | None = 6, **fields: Any) -> FromScratch:
    return build(method, classes, memory=20, **({"epochs": 3, "memory_batch": 8} | fields))


def trained(method: type[FromScratch], stop: int = 4, start: int = 0, **fields: Any) -> FromScratch:
    """Return a learner that observed some batches of the stream."""
    learner = build_short(method, **fields)
    train(learner, open_stream(), stop, start)
    return learner


@BOTH
def test_training_equals_the_literal_loop(method: type[FromScratch]) -> None:
    # Training with batches of 8 on maps of one pixel is so chaotic that rounding would show.
    learner = trained(method, memory_batch=12)
    learner.consolidate()
    stored = next(learner.memory.everything())
    rng = {purpose: generator(3, f"{purpose} 40") for purpose in ("network", "views", "order")}
    reference = trained(method, memory_batch=12)
    reference.rng = rng
    network = reference.make_network(reference.problem.classes or 1)
    rates = [0.005, 0.05, 0.05] if method is GDumb else [0.03, 0.03 * 0.75, 0.03 * 0.25]
    decay = 1e-6 if method is GDumb else 5e-4
    optimizer = torch.optim.SGD(network.parameters(), momentum=0.9, weight_decay=decay)
    for rate in rates:
        order = torch.randperm(len(stored), generator=rng["order"])
        for start in range(0, len(stored) // 12 * 12, 12):  # without the last partial batch
            slots = order[start : start + 12]
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            view = reference.augmentation(stored.x[slots], rng["views"])
            F.cross_entropy(network(view), stored.y[slots]).backward()
            if method is GDumb:
                torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
            optimizer.step()
    assert len(stored) == (20 if method is GDumb else 40)
    assert_networks_close(learner.network, network, 1e-5)
    assert learner.consolidation_images == 3 * (len(stored) // 12 * 12)
    assert learner.images == 0


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("views", [1, 2])
def test_joint_training_under_a_law_equals_the_literal_loop(law: str, views: int) -> None:
    # One batch for each epoch: smaller ones amplify rounding, and this loss is a steep one.
    fields: dict[str, Any] = {
        "law": law,
        "variance": 0.3,
        "projection": 10,
        "memory_batch": 40,
        "views": views,
    }
    learner, reference = trained(Joint, epochs=2, **fields), trained(Joint, epochs=2, **fields)
    assert isinstance(learner, Joint)
    learner.consolidate()
    stored = next(learner.memory.everything())
    reference.rng = rng = {one: generator(3, f"{one} 40") for one in ("network", "views", "order")}
    network = reference.make_network(6)
    assert network.outputs == 10
    optimizer = torch.optim.SGD(network.parameters(), momentum=0.9, weight_decay=5e-4)
    concentration = LAWS[law].concentration_of(0.3)
    shape: dict[str, Any] = {"df": DEFAULT_DF} if law == "projected-student-t" else {}
    laws = [LAWS[law](torch.eye(10)[c], concentration, **shape) for c in range(6)]
    for rate in (0.03, 0.015):
        slots = torch.randperm(len(stored), generator=rng["order"])
        images, labels = stored.x[slots], stored.y[slots].tolist()
        inputs = [reference.augmentation(images, rng["views"]) for _ in range(views)]
        total = torch.zeros(())
        for view in inputs if views == 1 else [*inputs, images]:
            for row, label in zip(F.normalize(network(view)), labels, strict=True):
                density = {c: laws[c].log_prob(row).exp() for c in set(labels)}
                posterior = density[label] / torch.stack([*density.values()]).sum()
                total = total - posterior.log()
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        (total / (40 * (views + (views > 1)))).backward()
        optimizer.step()
    assert_networks_close(learner.network, network, 1e-5)
    scores, labels_of = learner.scores(stored.x)
    with torch.no_grad():
        z = network.eval()(stored.x, unit=True)
    expected = torch.stack([laws[c].log_prob(z) for c in labels_of.tolist()], 1)
    torch.testing.assert_close(scores.log_softmax(1), expected.log_softmax(1), rtol=1e-3, atol=1e-3)


def test_joint_training_under_a_law_widens_the_projection_for_new_classes() -> None:
    learner = build_short(Joint, classes=None, law="von-mises-fisher", projection=4)
    for top in (3, 6):
        learner.observe(Batch(random_images(4), torch.tensor([0, 1, 2, top])))
        learner.consolidate()
        assert learner.network.outputs == max(4, top + 1)
    assert learner.scores(random_images(2))[1].tolist() == [0, 1, 2, 3, 6]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"variance": 0.5}, "variance=0.5 has no effect on the cross-entropy .* set a law"),
        ({"projection": 64}, "projection=64 has no effect on the cross-entropy .* set a law"),
        ({"law": "gauss"}, "unknown law 'gauss'"),
        ({"law": "vmf", "variance": -1.0}, "variance -1.0 is out of range"),
    ],
)
def test_fields_of_a_law_are_checked(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build_short(Joint, **fields)


def test_the_fields_of_a_law_leave_the_id_of_joint_as_it_was() -> None:
    plain = RunConfig.of(method="joint")
    assert not {"law", "variance", "projection"} & plain.to_dict()["method"].keys()
    assert RunConfig.of(method="joint", law="none", variance=2.0, projection=512).id == plain.id
    under_law = {RunConfig.of(method="joint", law=law).id for law in ("agd", "angular-gaussian")}
    assert len(under_law) == 1
    assert plain.id not in under_law


@BOTH
def test_observe_stores_the_batch_and_takes_no_step(method: type[FromScratch]) -> None:
    learner = build_short(method)
    before = [p.clone() for p in learner.network.parameters()]
    assert learner.observe(open_stream().batch(0)) is None  # type: ignore[func-returns-value]
    assert len(learner.memory) == 10
    assert all(map(torch.equal, before, learner.network.parameters()))
    assert learner.images == learner.consolidation_images == 0


@BOTH
def test_a_second_consolidation_trains_no_second_network(method: type[FromScratch]) -> None:
    learner, x = trained(method), open_stream().batch(0).x
    learner.consolidate()
    scores, images = learner.scores(x)[0], learner.consolidation_images
    learner.consolidate()
    assert learner.consolidation_images == images
    assert torch.equal(scores, learner.scores(x)[0])


@BOTH
def test_earlier_consolidations_do_not_change_later_ones(method: type[FromScratch]) -> None:
    evaluated, other = trained(method, 2), trained(method, 2)
    evaluated.consolidate()
    for learner in (evaluated, other):
        train(learner, open_stream(), 4, start=2)
        learner.consolidate()
    x = open_stream().batch(0).x
    assert torch.equal(evaluated.scores(x)[0], other.scores(x)[0])
    assert same(evaluated.state_dict(), other.state_dict())
    resumed = build_short(method)
    resumed.load_state_dict(evaluated.state_dict())
    resumed.consolidate()
    assert torch.equal(evaluated.scores(x)[0], resumed.scores(x)[0])


@BOTH
def test_predictions_need_a_consolidation_after_the_last_batch(method: type[FromScratch]) -> None:
    learner, x = trained(method, 1), open_stream().batch(0).x
    with pytest.raises(SteradError, match="call it before you predict"):
        learner.predict(x)
    learner.consolidate()
    learner.predict(x)
    train(learner, open_stream(), 2, start=1)
    for function in (learner.predict, learner.scores, learner.immediate_scores):
        with pytest.raises(SteradError, match="test_then_train"):
            function(x)
    learner.consolidate()
    # The loaded state has as many images, but other ones.
    learner.load_state_dict(trained(method, 4, start=2).state_dict())
    with pytest.raises(SteradError, match="call it before you predict"):
        learner.predict(x)


@BOTH
def test_new_classes_widen_the_next_network(method: type[FromScratch]) -> None:
    learner, x = build_short(method, classes=None), random_images(4)
    learner.observe(Batch(x, torch.tensor([0, 1, 0, 1])))
    learner.consolidate()
    assert learner.scores(x)[0].shape == (4, 2)
    learner.observe(Batch(x, torch.tensor([7, 1, 7, 1])))
    learner.consolidate()
    assert (learner.network.outputs, learner.scores(x)[1].tolist()) == (8, [0, 1, 7])


@BOTH
def test_a_memory_smaller_than_a_batch_is_one_batch(method: type[FromScratch]) -> None:
    learner = trained(method, 1, memory_batch=64)
    learner.consolidate()
    assert learner.consolidation_images == 3 * 10


def test_a_classifier_is_fitted_to_the_features_of_the_trained_network() -> None:
    learner = trained(GDumb, classifier="nearest-mean")
    learner.consolidate()
    assert learner.fitted is not None
    stored = next(learner.memory.everything())
    network = learner.network.eval()
    with torch.no_grad():
        features = F.normalize(network.features(stored.x))
    means = torch.stack([features[stored.y == label].mean(0) for label in learner.fitted.labels])
    nearest = torch.cdist(features, means).argmin(dim=1)
    assert learner.predict(stored.x).tolist() == learner.fitted.labels[nearest].tolist()


def test_default_settings_of_gdumb_are_those_of_the_released_code() -> None:
    config = GDumbConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.05, 0.9)
    assert (config.weight_decay, config.clip, config.epochs) == (1e-6, 10.0, 30)
    assert (config.memory_batch, config.augmentation, config.head) == (16, "partial", "mlp")


def test_joint_stores_everything_and_is_evaluated_only_at_the_end() -> None:
    learner = trained(Joint, 6)
    assert len(learner.memory) == 60 > learner.problem.memory
    assert learner.memory_counts(6) is None
    assert (Joint.trains, GDumb.trains) == ("at-end", "at-evaluation")
    config = JointConfig()
    assert (config.epochs, config.memory_batch, config.augmentation) == (20, 64, "full")


def test_gdumb_has_a_balanced_memory() -> None:
    memory = build(GDumb, memory=10).memory
    assert isinstance(memory, GreedyBalanced)
    assert memory.capacity == 10


def test_gdumb_has_the_published_learning_rates() -> None:
    published = [0.005, 0.05, 0.05, 0.02525, 0.05, 0.04275, 0.02525, 0.00775]
    published += [0.05, 0.04812, 0.04275, 0.03472, 0.02525, 0.01578, 0.00775, 0.00238, 0.05]
    learner = build(GDumb)
    assert [round(learner.rate(epoch), 5) for epoch in range(17)] == published


def test_restarting_cosine_equals_the_scheduler_of_torch() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 1, 2, eta_min=5e-4)
    for epoch in range(70):
        expected = optimizer.param_groups[0]["lr"]
        assert restarting_cosine(epoch, 0.05, 5e-4) == pytest.approx(expected)
        optimizer.step()
        scheduler.step()


@BOTH
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epochs": 0}, "epochs 0 is out of range: give an integer from 1 to 1,000,000$"),
        ({"teacher": "ema"}, "teacher=none"),
        ({"memory_iterations": 2}, "memory_iterations=1"),
        ({"memory_batch": 0}, "memory_batch 0 is out of range: give an integer from 1 to 100,000$"),
    ],
)
def test_invalid_fields_raise(
    method: type[FromScratch], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(SteradError, match=message):
        build_short(method, **fields)


def test_a_minimum_learning_rate_of_zero_raises() -> None:
    message = r"^min_lr 0\.0 is out of range: give a number in \(0, 1e\+06\]$"
    with pytest.raises(SteradError, match=message):
        build(GDumb, min_lr=0.0)


@BOTH
def test_consolidating_an_empty_memory_raises(method: type[FromScratch]) -> None:
    with pytest.raises(SteradError, match="observe a batch"):
        build_short(method).consolidate()


@pytest.mark.filterwarnings("ignore:.*float16.*")
def test_the_loss_scale_of_an_earlier_training_is_not_reused() -> None:
    """In float16 the scaler adapts its scale; a training must not depend on earlier ones."""
    problem = {"execution": Execution(precision="float16")}
    evaluated, other = (build(GDumb, problem=problem, epochs=2, memory_batch=8) for _ in range(2))
    stream = open_stream()
    for step in range(4):
        evaluated.observe(stream.batch(step))
        other.observe(stream.batch(step))
        evaluated.consolidate()
        evaluated.engine.scaler.update(2.0**5)  # as if gradients had overflowed
    evaluated.trained_after = None
    for learner in (evaluated, other):
        learner.consolidate()
    x = stream.batch(0).x
    assert torch.equal(evaluated.scores(x)[0], other.scores(x)[0])
