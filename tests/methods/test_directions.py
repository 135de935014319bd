"""Directions of fixed-directions methods: simplex, orthonormal and learned ones."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.agd_fd import AngularGaussianFixedDirections
from sterad.streams import Batch
from sterad.testing.method import same
from tests.methods.scaffold import assert_resumes, build, open_stream, random_images, train

AGDFD = AngularGaussianFixedDirections
GIVEN = ["simplex", "orthonormal", "learned"]
SMALL: dict[str, Any] = {"projection": 16, "views": 1, "memory_batch": 4}


def make(directions: str, **fields: Any) -> AGDFD:
    problem = fields.pop("problem", {})
    classes = fields.pop("classes", 6)
    return build(AGDFD, classes=classes, problem=problem, directions=directions, **SMALL | fields)


def directions_of(learner: AGDFD) -> Tensor:
    found = learner.directions_for(torch.zeros(1))
    assert found is not None
    return found.detach()


def literal_loss(learner: AGDFD, z: Tensor, labels: list[int]) -> float:
    """Return the summed negative log posterior over the classes of the batch, term by term."""
    directions, total = directions_of(learner), 0.0
    for row, label in zip(z, labels, strict=True):
        logs = {c: learner.log_density((row * directions[c]).sum()).item() for c in set(labels)}
        total += torch.tensor(list(logs.values())).logsumexp(0).item() - logs[label]
    return total


@pytest.mark.parametrize("directions", GIVEN)
def test_the_loss_is_the_posterior_around_the_directions(directions: str) -> None:
    learner = make(directions)
    z = F.normalize(torch.randn(7, 16, generator=torch.Generator().manual_seed(1)))
    labels = [0, 3, 3, 5, 0, 1, 5]
    loss = learner.loss_of(z, torch.tensor(labels)).item()
    assert loss == pytest.approx(literal_loss(learner, z, labels), rel=1e-5)


def test_directions_have_their_cosines() -> None:
    simplex, orthonormal = directions_of(make("simplex")), directions_of(make("orthonormal"))
    assert simplex.shape == (6, 16)
    cosines = simplex @ simplex.T
    assert torch.allclose(cosines, torch.eye(6) * 1.2 - 0.2, atol=1e-6)
    assert torch.allclose(orthonormal @ orthonormal.T, torch.eye(16), atol=1e-5)
    assert not torch.allclose(orthonormal, torch.eye(16), atol=0.1)
    other = directions_of(make("orthonormal", problem={"seed": 4}))
    assert not torch.allclose(orthonormal, other, atol=0.1)
    assert torch.equal(directions_of(make("learned")), torch.eye(16))


@pytest.mark.parametrize("directions", GIVEN)
@pytest.mark.parametrize("classifier", ["nearest-mean", "nearest-direction"])
def test_learning_and_resuming(directions: str, classifier: str) -> None:
    learner, fresh = (make(directions, classifier=classifier) for _ in range(2))
    stream = open_stream()
    train(learner, stream, 3)
    assert_resumes(learner, fresh, stream.batch(3), stream.batch(4))
    for one in (learner, fresh):
        one.consolidate()
    x = random_images(4)
    assert same(learner.scores(x), fresh.scores(x))


def test_learned_directions_move_with_the_network_and_the_fixed_ones_stay() -> None:
    stream = open_stream()
    for directions in GIVEN:
        learner = make(directions)
        before = directions_of(learner).clone()
        train(learner, stream, 3)
        assert torch.equal(directions_of(learner), before) == (directions != "learned")


@pytest.mark.parametrize("directions", GIVEN)
def test_the_nearest_direction_predicts(directions: str) -> None:
    learner = make(directions, classifier="nearest-direction")
    train(learner, open_stream(), 2)
    x = random_images(5)
    scores, labels = learner.immediate_scores(x)
    z = learner.engine.evaluate(lambda network, x: network(x, unit=True), x)
    cosines = z @ directions_of(learner)[labels].T
    assert torch.equal(scores.argmax(1), cosines.argmax(1))


def test_learned_directions_with_all_options() -> None:
    learner, fresh = (
        make("learned", classifier="nearest-direction", retrain_head=True, teacher="ema")
        for _ in range(2)
    )
    stream = open_stream()
    train(learner, stream, 2)
    learner.consolidate()
    assert all(weight.grad is None for weight in learner.network.parameters())
    assert_resumes(learner, fresh, stream.batch(2))


def test_orthonormal_directions_grow_and_keep_the_old_ones() -> None:
    learner, fresh = (make("orthonormal", classes=None, projection=2) for _ in range(2))
    before = directions_of(learner).clone()
    for label in (0, 1, 4):
        learner.observe(Batch(random_images(3, label), torch.tensor([0, 1, label])))
    after = directions_of(learner)
    assert torch.equal(after[:2, :2], before)
    assert torch.allclose(after @ after.T, torch.eye(5), atol=1e-6)
    assert_resumes(learner, fresh, Batch(random_images(2), torch.tensor([4, 6])))


@pytest.mark.parametrize("directions", ["simplex", "learned"])
def test_other_directions_refuse_to_grow(directions: str) -> None:
    learner = make(directions, classes=None, projection=2)
    learner.observe(Batch(random_images(2), torch.tensor([0, 1])))
    with pytest.raises(SteradError, match=f"directions={directions} of 2 dimensions cannot grow"):
        learner.observe(Batch(random_images(2), torch.tensor([0, 7])))


def test_points_on_the_sphere_are_around_the_basis() -> None:
    learner = make("orthonormal")
    x = random_images(3)
    z = learner.engine.evaluate(lambda network, x: network(x, unit=True), x)
    on_sphere = learner.on_sphere(x)
    assert on_sphere is not None
    assert torch.allclose(on_sphere[:, 2], z @ directions_of(learner)[2], atol=1e-6)
    assert make("simplex").on_sphere(x) is None
    assert make("learned").on_sphere(x) is None
