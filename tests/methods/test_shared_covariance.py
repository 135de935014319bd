"""AGD-FD with a covariance of all classes: the loss, its estimate, and what it works with."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.agd_fd import AngularGaussianFixedDirections
from sterad.methods.base.shared_covariance import REFRESH_STEPS, SharedCovariance
from sterad.sphere import GeneralAngularGaussian
from sterad.streams import Batch
from sterad.testing import check_method
from sterad.testing.method import same
from tests.methods.scaffold import assert_resumes, build, open_stream, random_images, train

AGDFD = AngularGaussianFixedDirections
SMALL: dict[str, Any] = {"projection": 16, "views": 1, "memory_batch": 4}


def make(classes: int | None = 6, **fields: Any) -> AGDFD:
    return build(AGDFD, classes=classes, **SMALL | {"covariance": "shared"} | fields)


def shared(learner: AGDFD) -> SharedCovariance:
    assert learner.covariance is not None
    return learner.covariance


def random_rows(n: int, d: int = 16, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    scales = torch.linspace(0.2, 3.0, d, dtype=torch.float64)
    return F.normalize(torch.randn(n, d, generator=rng, dtype=torch.float64) * scales)


def set_scatter(learner: AGDFD, seed: int = 5) -> Tensor:
    """Give the learner the scatter of random rows; return its Σ."""
    covariance, d = shared(learner), learner.network.outputs
    rows = random_rows(4 * d, d, seed)
    covariance.scatter.copy_(rows.T @ rows / len(rows))
    covariance.refresh()
    return covariance.covariance


def literal_densities(
    z: Tensor, classes: list[int], covariance: Tensor, directions: Tensor
) -> list[list[Tensor]]:
    """Return the log-density of each row under the public law of each class, one by one."""
    laws = {c: GeneralAngularGaussian(directions[c], covariance) for c in classes}
    return [[laws[c].log_prob(row) for c in classes] for row in z]


def literal_loss(z: Tensor, labels: list[int], covariance: Tensor, directions: Tensor) -> Tensor:
    """Return minus the log posterior among the classes of the batch, row by row."""
    classes, total = sorted(set(labels)), torch.zeros((), dtype=torch.float64)
    densities = literal_densities(z, classes, covariance, directions)
    for row, label in zip(densities, labels, strict=True):
        total = total + torch.stack(row).logsumexp(0) - row[classes.index(label)]
    return total


@pytest.mark.parametrize("directions", ["basis", "simplex", "orthonormal", "learned"])
@pytest.mark.parametrize("shrinkage", [0.05, 0.5])
def test_the_loss_is_the_posterior_of_the_public_law(directions: str, shrinkage: float) -> None:
    learner = make(directions=directions, covariance_shrinkage=shrinkage, variance=0.3)
    learner.network.double()
    covariance = set_scatter(learner)
    found_directions = learner.directions_for(torch.zeros(1, dtype=torch.float64))
    means = torch.eye(16).double() if found_directions is None else found_directions.detach()
    z, labels = random_rows(9).requires_grad_(), [0, 3, 3, 5, 0, 1, 5, 5, 1]
    expected = literal_loss(z, labels, covariance, means)
    # The whitening is kept in float32 with the network: exact Cholesky factors for this test.
    factor = torch.linalg.cholesky(covariance)
    shared(learner).whitening = torch.linalg.inv(factor)
    found = learner.loss_of(z, torch.tensor(labels))
    assert found.item() == pytest.approx(expected.item(), rel=1e-9)
    gradients = [torch.autograd.grad(loss, z)[0] for loss in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-7, atol=1e-8)


def test_the_loss_in_float32_and_512_dimensions_is_close_to_float64() -> None:
    learner = make(projection=512)
    covariance = set_scatter(learner)
    z, labels = random_rows(30, 512), [(7 * i) % 11 for i in range(30)]
    z = F.normalize(z + 0.1 * torch.eye(512, dtype=torch.float64)[labels])
    expected = literal_loss(z, labels, covariance, torch.eye(512).double())
    found = learner.loss_of(z.float(), torch.tensor(labels))
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("norm_all", [False, True])
def test_an_isotropic_covariance_gives_the_loss_of_agd_fd(norm_all: bool) -> None:
    learner, plain = make(norm_all=norm_all), make(norm_all=norm_all, covariance="isotropic")
    for one in (learner, plain):
        one.seen = torch.tensor([0, 2, 3, 5])
    shared(learner).scatter.copy_(0.037 * torch.eye(16))
    shared(learner).refresh()
    torch.testing.assert_close(shared(learner).covariance, 2 * torch.eye(16).double())
    z, labels = random_rows(8).float(), torch.tensor([0, 3, 3, 5, 0, 3, 5, 5])
    assert learner.loss_of(z, labels).item() == pytest.approx(plain.loss_of(z, labels).item(), 1e-6)
    scores, expected = learner.class_scores(z), plain.class_scores(z)
    torch.testing.assert_close(scores.log_softmax(1), expected.log_softmax(1))


@pytest.mark.parametrize("preparatory_classes", [0, 2])
def test_with_full_shrinkage_a_whole_stream_is_that_of_agd_fd(preparatory_classes: int) -> None:
    learner = make(covariance_shrinkage=1.0, preparatory_classes=preparatory_classes)
    plain = make(covariance="isotropic", preparatory_classes=preparatory_classes)
    stream = open_stream(per_class=25)
    for step in range(len(stream)):
        losses = learner.observe(stream.batch(step)), plain.observe(stream.batch(step))
        if losses[0] is not None and losses[1] is not None and step < 4:
            torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-4)
    assert shared(learner).steps > REFRESH_STEPS
    identity = torch.eye(16) / 2**0.5
    torch.testing.assert_close(shared(learner).whitening, identity, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("retrieval", ["random", "mir"])
def test_the_covariance_follows_the_scatter_of_the_rows_of_each_step(retrieval: str) -> None:
    fields: dict[str, Any] = {
        "covariance_momentum": 0.8,
        "covariance_shrinkage": 0.3,
        "variance": 0.7,
    }
    learner = make(views=2, retrieval=retrieval, **fields)
    scatter = 2 / 16 * torch.eye(16, dtype=torch.float64)
    recorded: list[tuple[Tensor, Tensor]] = []
    loss_of = learner.loss_of

    def recording(z: Tensor, labels: Tensor, *args: Any) -> Tensor:
        recorded.append((z.detach(), labels))
        return loss_of(z, labels, *args)

    learner.loss_of = recording  # type: ignore[method-assign, assignment]
    stream, steps = open_stream(per_class=30), 0
    for step in range(len(stream)):
        recorded.clear()
        before = shared(learner).whitening.clone()
        if learner.observe(stream.batch(step)) is None:
            continue
        z, labels = recorded[-1]  # a retrieval computes losses before
        mean = torch.zeros(16, 16, dtype=torch.float64)
        for row, label in zip(z.double(), labels.tolist(), strict=True):
            deviation = row - torch.eye(16, dtype=torch.float64)[label]
            mean += deviation.outer(deviation) / len(z)
        scatter, steps = 0.8 * scatter + 0.2 * mean, steps + 1
        changed = not torch.equal(before, shared(learner).whitening)
        assert changed == (steps % REFRESH_STEPS == 0)
    torch.testing.assert_close(shared(learner).scatter, scatter.float(), rtol=1e-4, atol=1e-6)
    unit = float((scatter @ scatter).trace() / scatter.trace())
    expected = 0.7 * (0.7 * scatter / unit + 0.3 * torch.eye(16, dtype=torch.float64))
    found = shared(learner).covariance
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    # The constraint that identifies the scale, and the bound that the kernel relies on.
    assert float((found @ scatter).trace() / scatter.trace()) == pytest.approx(0.7, rel=1e-4)
    assert float(torch.linalg.eigvalsh(found)[0]) >= 0.3 * 0.7 * (1 - 1e-6)
    whitening = torch.linalg.inv(torch.linalg.cholesky(found))
    assert float(whitening.norm(dim=0).max()) <= learner.log_density.concentration


def test_points_close_to_their_directions_give_the_shape_of_their_covariance() -> None:
    """To first order in Σ the scatter is Σ: points are drawn from the public law."""
    learner = make(covariance_momentum=0.0, covariance_shrinkage=1e-3, variance=1.0)
    rng = torch.Generator().manual_seed(2)
    raw = torch.randn(16, 16, generator=rng, dtype=torch.float64)
    eye = torch.eye(16, dtype=torch.float64)
    true = 1e-4 * (raw @ raw.T / 16 + 0.5 * eye)
    labels = torch.arange(16).repeat_interleave(2000)
    laws = [GeneralAngularGaussian(one, true) for one in eye]
    z = torch.cat([law.sample((2000,), generator=rng) for law in laws])
    shared(learner).record(z, labels, None)
    shared(learner).after_step(learner)
    # A deviation has, to first order, no component along the direction of its class.
    tangent = [eye - one.outer(one) for one in eye]
    expected = torch.stack([part @ true @ part for part in tangent]).mean(0)
    expected = expected * (expected.trace() / expected.square().sum())
    # 32,000 draws: the relative standard error of a variance is 0.8 %.
    torch.testing.assert_close(shared(learner).covariance, expected, rtol=0.04, atol=0.02)


def test_the_nearest_direction_has_the_largest_density() -> None:
    learner = make(classifier="nearest-direction", variance=0.3)
    train(learner, open_stream(), 4)
    covariance = set_scatter(learner)
    learner.consolidate()
    x = random_images(12)
    scores, labels = learner.scores(x)
    z = learner.engine.evaluate(lambda network, x: network(x, unit=True), x).double()
    classes = labels.tolist()
    rows = literal_densities(z, classes, covariance, torch.eye(16).double())
    expected = torch.stack([torch.stack(row) for row in rows])
    torch.testing.assert_close(
        scores.double().log_softmax(1), expected.log_softmax(1), rtol=1e-4, atol=1e-4
    )
    assert torch.equal(learner.predict(x), labels[expected.argmax(1)])


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"norm_all": True, "classifier": "nearest-direction", "retrain_head": True},
        {"directions": "learned", "teacher": "ema"},
        {"directions": "orthonormal", "chain_views": 2, "memory_iterations": 2},
        {"stage_weight": 1.0, "flatten_weight": 1.0},
        {"retrieval": "mir", "review": True},
    ],
    ids=lambda fields: "-".join(fields) or "alone",
)
def test_learning_and_resuming_with_other_additions(fields: dict[str, Any]) -> None:
    problem: dict[str, Any] = {"announced": True}
    learner, fresh = (make(problem=problem, **fields) for _ in range(2))
    stream = open_stream(per_class=30)
    train(learner, stream, 2 + REFRESH_STEPS)
    start = shared(learner).steps
    assert start >= REFRESH_STEPS
    assert not torch.equal(shared(learner).whitening, make(problem=problem).covariance.whitening)  # type: ignore[union-attr]
    assert_resumes(learner, fresh, *(stream.batch(12 + i) for i in range(3)))
    for one in (learner, fresh):
        one.consolidate()
    x = random_images(4)
    assert same(learner.scores(x), fresh.scores(x))


def test_only_rows_of_the_last_stage_and_of_steps_are_counted() -> None:
    """A retrieval, a loss on an early stage and a retrained head do not change the estimate."""
    learner, plain = make(stage_weight=1.0, stage_distillation=0.0), make()
    stream = open_stream()
    for one in (learner, plain):
        one.observe(stream.batch(0))
        one.observe(stream.batch(1))
    # Both drew the same network, views and memory: the first rows are equal but for rounding.
    torch.testing.assert_close(shared(learner).scatter, shared(plain).scatter)
    assert (shared(learner).steps, shared(learner).deviations) == (1, None)


def test_posteriors_of_the_covariance_are_distilled() -> None:
    learner = make()
    covariance = set_scatter(learner)
    learner.seen = torch.tensor([0, 2, 5])
    outputs = [torch.randn(4, 16, generator=torch.Generator().manual_seed(i)) for i in range(2)]
    log_posteriors = []
    for one in outputs:
        rows = literal_densities(
            F.normalize(one).double(), [0, 2, 5], covariance, torch.eye(16).double()
        )
        scores = torch.stack([torch.stack(row) for row in rows])
        log_posteriors.append((scores / 4.0).log_softmax(1))
    target, output = log_posteriors
    expected = 16 * (target.exp() * (target - output)).sum()
    first, second = outputs
    assert learner.distillation_loss(first, second).item() == pytest.approx(
        expected.item(), rel=1e-4
    )


@pytest.mark.parametrize("directions", ["basis", "orthonormal"])
def test_new_labels_widen_the_covariance_and_the_learner_resumes(directions: str) -> None:
    fields: dict[str, Any] = {"classes": None, "projection": 4, "directions": directions}
    learner, fresh = make(**fields), make(**fields)
    for step in range(REFRESH_STEPS + 2):
        learner.observe(Batch(random_images(6, step), torch.tensor([0, 1, 2, 3, 0, 1])))
    before = shared(learner).covariance
    learner.observe(Batch(random_images(3), torch.tensor([6, 1, 2])))
    assert shared(learner).scatter.shape == (7, 7)
    learner.see(Batch(random_images(1), torch.tensor([8])))
    after, old = shared(learner).covariance, shared(learner).scatter
    assert after.shape == (9, 9)
    assert not bool(after[7:, :7].any())
    # New dimensions have the variance σ² before the mean in the direction of a deviation changes.
    unit = float(old[:7, :7].square().sum() / old[:7, :7].trace())
    torch.testing.assert_close(old[7:, 7:], unit * torch.eye(2))
    assert before.shape == (4, 4)
    batch = Batch(random_images(4), torch.tensor([8, 6, 2, 7]))
    learner.observe(batch)
    assert_resumes(learner, fresh, batch, batch)


def test_a_state_of_another_size_is_refused() -> None:
    learner, state = make(), make().state_dict()
    state["covariance"] = state["covariance"] | {"scatter": torch.eye(3)}
    with pytest.raises(ValueError, match=r"covariance\.scatter is float32"):
        learner.load_state_dict(state)
    with pytest.raises(ValueError, match="covariance"):
        learner.load_state_dict(make(covariance="isotropic").state_dict())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"law": "von-mises-fisher"}, "covariance=shared is .* the law is von-mises-fisher: use"),
        ({"directions": "moving"}, "directions=moving are means of each batch: use"),
        ({"directions": "moving-mean"}, "directions=moving-mean are means of each batch: use"),
        (
            {"objective": "likelihood"},
            "on one axis, .* whatever their classes: use objective=posterior",
        ),
        (
            {"covariance": "diagonal"},
            "covariance 'diagonal' is unknown: choose isotropic or shared",
        ),
        ({"covariance_shrinkage": 0.0}, r"covariance_shrinkage 0.0 is out of range"),
        ({"covariance_momentum": 1.0}, r"covariance_momentum 1.0 is out of range"),
        (
            {"covariance": "isotropic", "covariance_shrinkage": 0.2},
            "covariance_shrinkage=0.2 has no effect without covariance: set covariance=shared",
        ),
    ],
)
def test_fields_without_meaning_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        make(**fields)


def test_representations_that_are_not_finite_are_refused() -> None:
    learner = make()
    shared(learner).record(torch.full((3, 16), math.nan), torch.tensor([0, 1, 2]), None)
    shared(learner).steps = REFRESH_STEPS - 1
    with pytest.raises(SteradError, match="NaN or infinite, so that they have no covariance"):
        shared(learner).after_step(learner)


@pytest.mark.slow
def test_it_fulfils_the_contract_on_all_streams() -> None:
    config = AGDFD.Config(covariance="shared", views=1, projection=8, memory_iterations=5)
    check_method("agd-fd", config)  # 25 steps on each stream, so that the estimate is used
