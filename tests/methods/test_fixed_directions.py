"""AGD-FD and vMF-FD: one whole step against a literal transcription of the algorithm."""

import copy
import math
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from sterad.errors import SteradError
from sterad.methods.agd_fd import AngularGaussianFixedDirections
from sterad.methods.fixed_directions import FixedDirections
from sterad.methods.vmf_fd import VonMisesFisherFixedDirections
from sterad.streams import Batch
from tests.methods.scaffold import (
    assert_networks_close,
    assert_resumes,
    build,
    open_stream,
    random_images,
    take_step,
    train,
)

AGDFD, VMFFD = AngularGaussianFixedDirections, VonMisesFisherFixedDirections
AGD_AND_VMF = pytest.mark.parametrize("method", [AGDFD, VMFFD])


def random_directions(n: int, seed: int) -> Tensor:
    """Return n random unit rows in 16 dimensions."""
    return normalize(torch.randn(n, 16, generator=torch.Generator().manual_seed(seed)))


def predict_by_direction(learner: FixedDirections, z: Tensor) -> Tensor:
    """Return the seen class with the largest coordinate of each unit row."""
    return learner.seen[z[:, learner.seen].argmax(dim=1)]


def log_g(t: Tensor, variance: float, d: int) -> Tensor:
    """Return log g from its series with mpmath, term by term (without gradients)."""
    kappa = mpmath.mpf(variance) ** -0.5
    return torch.tensor(
        [
            [
                float(
                    mpmath.log(
                        mpmath.exp(-(kappa**2) / 2)
                        * mpmath.nsum(
                            lambda n, c=cosine: (
                                (mpmath.sqrt(2) * kappa * c) ** n
                                * mpmath.gamma((d + n) / 2)
                                / mpmath.factorial(n)
                                / mpmath.gamma(mpmath.mpf(d) / 2)
                            ),
                            [0, mpmath.inf],
                        )
                    )
                )
                for cosine in row
            ]
            for row in t.tolist()
        ]
    )


@AGD_AND_VMF
def test_the_loss_is_the_negative_log_posterior_summed_over_views(
    method: type[FixedDirections],
) -> None:
    variance = 2.0 if method is AGDFD else 0.14
    learner = build(method, projection=16, views=1, variance=variance)
    z, labels = random_directions(8, seed=0), torch.tensor([0, 3, 3, 5, 0, 3, 3, 5])
    present = [0, 3, 5]
    if method is AGDFD:
        logits = log_g(z[:, present].double(), 2.0, 16)
    else:
        distance = (z[:, None, :] - torch.eye(16)[None, present]).square().sum(-1)
        logits = (-distance / (2 * 0.14)).double()
    total = 0.0
    for i, label in enumerate(labels.tolist()):
        denominator = sum(math.exp(value) for value in logits[i].tolist())
        total -= math.log(math.exp(float(logits[i, present.index(label)])) / denominator)
    assert learner.loss_of(z, labels).item() == pytest.approx(total, rel=1e-5)


@AGD_AND_VMF
def test_one_step_equals_the_literal_algorithm(method: type[FixedDirections]) -> None:
    stream, learner = open_stream(), build(method, projection=16, views=2, memory_batch=4)
    assert learner.observe(stream.batch(0)) is None, "no step while the memory is empty"
    reference = copy.deepcopy(learner)
    loss = take_step(learner, stream.batch(1))

    # Retrieve before storing; memory first; two views and the raw batch, one pass each.
    stored, new = reference.memory.sample(4), stream.batch(1)
    x, y = torch.cat([stored.x, new.x]), torch.cat([stored.y, new.y])
    inputs = [reference.augmentation(x, reference.rng["views"]) for _ in range(2)] + [x]
    total = torch.tensor(0.0)
    for view in inputs:
        p = reference.network.head(reference.network.encoder(view))
        z = p / p.norm(dim=1, keepdim=True)
        classes = sorted(set(y.tolist()))
        logits = reference.log_density(z[:, classes])
        for row, label in zip(logits, y.tolist(), strict=True):
            total = total - row[classes.index(label)] + row.exp().sum().log()
    reference.engine.optimizer.zero_grad()
    total.backward()
    reference.engine.optimizer.step()
    assert loss.item() == pytest.approx(total.item(), rel=1e-5)
    assert_networks_close(learner.network, reference.network, 2e-5, buffer_atol=1e-6)
    assert learner.images == 3 * 14


def test_norm_all_normalizes_over_every_seen_class() -> None:
    z, labels = random_directions(4, seed=1), torch.tensor([1, 2, 1, 2])
    present, all_seen = (build(VMFFD, projection=16, norm_all=flag) for flag in (False, True))
    for learner in (present, all_seen):
        learner.seen = torch.tensor([0, 1, 2, 4])
    logits = z[:, [0, 1, 2, 4]] / 0.14
    expected = cross_entropy(logits, torch.tensor([1, 2, 1, 2]), reduction="sum")
    assert all_seen.loss_of(z, labels).item() == pytest.approx(expected.item(), rel=1e-5)
    assert present.loss_of(z, labels) < all_seen.loss_of(z, labels)


def test_the_likelihood_objective_has_no_denominator() -> None:
    learner = build(AGDFD, projection=16, objective="likelihood")
    expected = -learner.log_density(torch.tensor([1.0, 0.0])).sum()
    loss = learner.loss_of(torch.eye(16)[:2], torch.tensor([0, 0]))
    assert loss.item() == pytest.approx(expected.item())


def test_default_settings_are_those_of_the_released_code() -> None:
    agd, vmf = AGDFD.Config(), VMFFD.Config()
    assert (agd.lr, agd.optimizer, agd.weight_decay, agd.variance) == (5e-4, "adam", 0.0, 2.0)
    assert (agd.views, agd.projection, agd.memory_batch, agd.augmentation) == (5, 512, 64, "full")
    assert (vmf.lr, vmf.variance, vmf.projection) == (5e-4, 0.14, 512)


def test_a_label_beyond_the_projection_widens_it_and_the_learner_resumes_bit_for_bit() -> None:
    learner, fresh = (build(AGDFD, classes=None, projection=4, views=1) for _ in range(2))
    x = random_images(6)
    for _ in range(2):
        learner.observe(Batch(x, torch.tensor([0, 1, 2, 3, 0, 1])))
    assert learner.network.outputs == 4
    before = [p.detach().clone() for p in learner.network.head.parameters()]
    learner.see(Batch(x[:1], torch.tensor([9])))
    assert learner.network.outputs == 10
    for old, new in zip(before, learner.network.head.parameters(), strict=True):
        assert torch.equal(old, new[: len(old)])
    batch = Batch(x, torch.tensor([9, 8, 2, 3, 0, 1]))
    learner.observe(batch)
    assert_resumes(learner, fresh, batch)


def test_without_a_head_a_label_beyond_the_features_raises() -> None:
    learner, x = build(AGDFD, classes=None, head="none", views=1), random_images(2)
    learner.observe(Batch(x, torch.tensor([0, 15])))
    with pytest.raises(SteradError, match="17"):
        learner.observe(Batch(x, torch.tensor([0, 16])))


def test_nearest_direction_predicts_the_largest_coordinate_of_a_seen_class() -> None:
    learner = build(AGDFD, projection=16, views=1, classifier="nearest-direction")
    stream = open_stream()
    train(learner, stream, 3)
    learner.consolidate()
    x, network = stream.batch(0).x, copy.deepcopy(learner.network).eval()
    with torch.no_grad():
        expected = predict_by_direction(learner, network(x, unit=True))
    assert torch.equal(learner.predict(x), expected)


@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_")  # a feature may be constant
def test_nearest_mean_equals_the_nearest_centroid_of_scikit_learn() -> None:
    from sklearn.neighbors import NearestCentroid

    stream, learner = open_stream(), build(VMFFD, projection=16, views=1)
    train(learner, stream)
    learner.consolidate()
    x, network = stream.batch(0).x, copy.deepcopy(learner.network).eval()
    stored = next(learner.memory.everything())
    with torch.no_grad():
        memory_features = network.features(stored.x, unit=True)
        features = network.features(x, unit=True)
    expected = NearestCentroid().fit(memory_features.numpy(), stored.y.numpy())
    assert learner.predict(x).tolist() == expected.predict(features.numpy()).tolist()


@pytest.mark.parametrize("options", [{}, {"teacher": "ema", "predict_with": "teacher"}])
def test_retrain_head_takes_50_epochs_of_adam_on_frozen_features(options: dict[str, str]) -> None:
    fields: dict[str, Any] = {"classifier": "nearest-direction", "retrain_head": True} | options
    stream, learner = open_stream(), build(VMFFD, projection=16, views=1, **fields)
    train(learner, stream, 3)
    learner.consolidate()
    model = copy.deepcopy(learner.predictor).eval().requires_grad_(True)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=5e-4)
    stored = next(learner.memory.everything())
    for _ in range(50):  # the memory is smaller than one batch of 200
        optimizer.zero_grad()
        learner.loss_of(model(stored.x, unit=True), stored.y).backward()
        optimizer.step()
    assert learner.retrained is not None
    # Adam divides by gradients, also by tiny ones, which amplifies the rounding of the features.
    assert_networks_close(learner.retrained, model.head, 1e-4)
    x = stream.batch(0).x
    with torch.no_grad():
        expected = predict_by_direction(learner, model(x, unit=True))
    assert torch.equal(learner.predict(x), expected)


@pytest.mark.parametrize("unit", [True, False])
def test_moving_directions_are_the_class_means_of_the_batch(unit: bool) -> None:
    learner = build(VMFFD, projection=16, directions="moving" if unit else "moving-mean")
    z = random_directions(7, seed=0).requires_grad_()
    labels = torch.tensor([0, 0, 0, 2, 2, 5, 5])
    means = {c: z[labels == c].mean(0) for c in (0, 2, 5)}
    if unit:
        means = {c: mean / mean.norm() for c, mean in means.items()}
    concentration, expected = 1 / 0.14, torch.zeros(())
    for i, label in enumerate(labels.tolist()):
        logits = {c: concentration * (z[i] @ mean) for c, mean in means.items()}
        expected = expected - logits[label] + torch.logsumexp(torch.stack([*logits.values()]), 0)
    loss = learner.loss_of(z, labels)
    assert torch.allclose(loss, expected, rtol=1e-5)
    (gradient,) = torch.autograd.grad(loss, [z])
    (expected_gradient,) = torch.autograd.grad(expected, [z])
    assert torch.allclose(gradient, expected_gradient, atol=1e-4), "through the means as well"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"variance": 0.0}, r"variance 0.0 is out of range: give a number in \(0, 1e\+06\]$"),
        ({"views": -1}, "views -1 is out of range: give an integer from 0 to 1,000$"),
        ({"retrain_head": True}, "nearest-direction"),
        ({"directions": "moving", "norm_all": True}, "directions=moving exist .* norm_all"),
        ({"directions": "moving", "teacher": "ema"}, "a batch only"),
        (
            {"directions": "moving-mean", "classifier": "nearest-direction"},
            "directions=moving-mean",
        ),
        ({"classifier": "oracle"}, "oracle"),
        ({"lr": 0.0}, r"lr 0.0 is out of range: give a number in \(0, 1e\+06\]$"),
        ({"augmentation": "ful"}, "did you mean 'full'"),
        ({"head": "deep"}, "deep"),
    ],
)
def test_invalid_fields_raise(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        build(AGDFD, **fields)
