"""The whole step of AGD-FD and vMF-FD against a slow, literal transcription of section 7.1."""

import copy
import math

import mpmath
import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.fixed_directions import FixedDirections, FixedDirectionsConfig
from sterad.streams import Batch, Clear, Stream


def problem(classes: int | None = 6, **changes: object) -> Problem:
    values: dict[str, object] = {"memory": 30, "width": 2, "seed": 3} | changes
    return Problem((1, 8, 8), classes, **values)  # type: ignore[arg-type]


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=10, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def learner(name: str, **fields: object) -> FixedDirections:
    cls = METHODS[name]
    made = build_learner(cls, cls.Config(**({"projection": 16} | fields)), problem())
    assert isinstance(made, FixedDirections)
    return made


def log_g(t: Tensor, variance: float, d: int) -> Tensor:
    """Return log g by the series with exact arithmetic, term by term (values only)."""
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


@pytest.mark.parametrize("name", ["agd-fd", "vmf-fd"])
def test_loss_is_the_sum_over_views_of_the_log_posterior(name: str) -> None:
    made = learner(name, views=1, variance=2.0 if name == "agd-fd" else 0.14)
    z = torch.nn.functional.normalize(
        torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    )
    labels = torch.tensor([0, 3, 3, 5, 0, 3, 3, 5])
    present = [0, 3, 5]
    if name == "agd-fd":
        logits = log_g(z[:, present].double(), 2.0, 16)
    else:
        distance = (z[:, None, :] - torch.eye(16)[None, present]).square().sum(-1)
        logits = (-distance / (2 * 0.14)).double()
    total = 0.0
    for i, label in enumerate(labels.tolist()):
        denominator = sum(math.exp(value) for value in logits[i].tolist())
        total -= math.log(math.exp(float(logits[i, present.index(label)])) / denominator)
    assert made.objective(z, labels).item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("name", ["agd-fd", "vmf-fd"])
def test_one_step_is_the_algorithm_of_the_paper(name: str) -> None:
    feed, made = stream(), learner(name, views=2, memory_batch=4)
    assert made.observe(feed.batch(0)) is None, "nothing is learned while the memory is empty"
    twin = copy.deepcopy(made)
    loss = made.observe(feed.batch(1))

    # Literally: retrieve before inserting, memory first, n views and the raw batch, one pass each.
    kept, new = twin.memory.sample(4), feed.batch(1)
    x, y = torch.cat([kept.x, new.x]), torch.cat([kept.y, new.y])
    shown = [twin.augmentation(x, twin.rng["views"]) for _ in range(2)] + [x]
    total = torch.tensor(0.0)
    for view in shown:
        p = twin.network.head(twin.network.encoder(view))
        z = p / p.norm(dim=1, keepdim=True)
        classes = sorted(set(y.tolist()))
        logits = twin.log_density(z[:, classes])
        for row, label in zip(logits, y.tolist(), strict=True):
            total = total - row[classes.index(label)] + row.exp().sum().log()
    twin.engine.optimizer.zero_grad()
    total.backward()
    twin.engine.optimizer.step()
    assert loss is not None
    assert loss.item() == pytest.approx(total.item(), rel=1e-5)
    for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=2e-5)
    for mine, literal in zip(made.network.buffers(), twin.network.buffers(), strict=True):
        assert torch.allclose(mine.float(), literal.float(), atol=1e-6)
    assert made.images == 3 * 14


def test_norm_all_puts_every_seen_class_in_the_denominator() -> None:
    z = torch.nn.functional.normalize(
        torch.randn(4, 16, generator=torch.Generator().manual_seed(1))
    )
    labels = torch.tensor([1, 2, 1, 2])
    narrow, wide = learner("vmf-fd"), learner("vmf-fd", norm_all=True)
    for one in (narrow, wide):
        one.seen = torch.tensor([0, 1, 2, 4])
    expected = torch.nn.functional.cross_entropy(
        z[:, [0, 1, 2, 4]] / 0.14, torch.tensor([1, 2, 1, 2]), reduction="sum"
    )
    assert wide.objective(z, labels).item() == pytest.approx(expected.item(), rel=1e-5)
    assert narrow.objective(z, labels) < wide.objective(z, labels)


def test_likelihood_pulls_without_a_denominator() -> None:
    made = learner("agd-fd", objective="likelihood")
    z = torch.eye(16)[:2]
    expected = -made.log_density(torch.tensor([1.0, 0.0])).sum()
    assert made.objective(z, torch.tensor([0, 0])).item() == pytest.approx(expected.item())


def test_released_settings_are_the_defaults() -> None:
    agd, vmf = METHODS["agd-fd"].Config(), METHODS["vmf-fd"].Config()
    assert (agd.lr, agd.optimizer, agd.weight_decay, agd.variance) == (5e-4, "adam", 0.0, 2.0)
    assert (agd.views, agd.projection, agd.memory_batch, agd.augmentation) == (5, 512, 64, "full")
    assert (vmf.lr, vmf.variance, vmf.projection) == (5e-4, 0.14, 512)


def test_projection_grows_when_a_label_exceeds_it() -> None:
    cls = METHODS["agd-fd"]
    made = build_learner(cls, cls.Config(projection=4, views=1), problem(classes=None))
    assert isinstance(made, FixedDirections)
    x = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    made.observe(Batch(x, torch.tensor([0, 1, 2, 3, 0, 1])))
    made.observe(Batch(x, torch.tensor([0, 1, 2, 3, 0, 1])))
    assert made.network.outputs == 4
    before = [p.detach().clone() for p in made.network.head.parameters()]
    made.admit(Batch(x[:1], torch.tensor([9])))
    assert made.network.outputs == 10
    for old, new in zip(before, made.network.head.parameters(), strict=True):
        assert torch.equal(old, new[: len(old)])
    made.observe(Batch(x, torch.tensor([9, 8, 2, 3, 0, 1])))
    loaded = build_learner(cls, cls.Config(projection=4, views=1), problem(classes=None))
    loaded.load_state_dict(made.state_dict())
    again = Batch(x, torch.tensor([9, 8, 2, 3, 0, 1]))
    first, second = made.observe(again), loaded.observe(again)
    assert first is not None
    assert second is not None
    assert torch.equal(first, second)


def test_without_a_head_the_directions_cannot_grow() -> None:
    cls = METHODS["agd-fd"]
    made = build_learner(cls, cls.Config(head="none", views=1), problem(classes=None))
    x = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    made.observe(Batch(x, torch.tensor([0, 15])))
    with pytest.raises(SteradError, match="17"):
        made.observe(Batch(x, torch.tensor([0, 16])))


def test_nearest_direction_answers_the_largest_seen_coordinate() -> None:
    feed, made = stream(), learner("agd-fd", views=1, classifier="nearest-direction")
    for step in range(3):
        made.observe(feed.batch(step))
    made.consolidate()
    x = feed.batch(0).x
    made.network.eval()
    with torch.no_grad():
        z = made.network(x, unit=True)
    made.network.train()
    expected = made.seen[z[:, made.seen].argmax(dim=1)]
    assert torch.equal(made.predict(x), expected)


@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_")  # a dead ReLU is no concern
def test_nearest_mean_is_scikit_learns_nearest_centroid() -> None:
    from sklearn.neighbors import NearestCentroid

    feed, made = stream(), learner("vmf-fd", views=1)
    for step in range(len(feed)):
        made.observe(feed.batch(step))
    made.consolidate()
    made.network.eval()
    with torch.no_grad():
        kept = next(made.memory.everything())
        remembered = made.network.features(kept.x, unit=True)
        asked = made.network.features(feed.batch(0).x, unit=True)
    made.network.train()
    oracle = NearestCentroid().fit(remembered.numpy(), kept.y.numpy())
    assert made.predict(feed.batch(0).x).tolist() == oracle.predict(asked.numpy()).tolist()


@pytest.mark.parametrize("taught", [{}, {"teacher": "ema", "predict_with": "teacher"}])
def test_head_retraining_is_fifty_epochs_of_adam_on_the_frozen_features(
    taught: dict[str, str],
) -> None:
    feed = stream()
    made = learner("vmf-fd", views=1, classifier="nearest-direction", retrain_head=True, **taught)
    for step in range(3):
        made.observe(feed.batch(step))
    made.consolidate()
    model = copy.deepcopy(made.predictor).eval().requires_grad_(True)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=5e-4)
    kept = next(made.memory.everything())
    for _ in range(50):  # the memory is smaller than one batch of 200
        optimizer.zero_grad()
        made.objective(model(kept.x, unit=True), kept.y).backward()
        optimizer.step()
    assert made.retrained is not None
    for ours, theirs in zip(made.retrained.parameters(), model.head.parameters(), strict=True):
        # Adam divides by gradients, tiny ones too, and so enlarges the rounding of the features.
        assert torch.allclose(ours, theirs, atol=1e-4)
    with torch.no_grad():
        z = model(feed.batch(0).x, unit=True)
    assert torch.equal(made.predict(feed.batch(0).x), made.seen[z[:, made.seen].argmax(dim=1)])


@pytest.mark.parametrize("unit", [True, False])
def test_moving_directions_are_the_means_of_the_batch(unit: bool) -> None:
    made = learner("vmf-fd", directions="moving" if unit else "moving-mean")
    noise = torch.randn(7, 16, generator=torch.Generator().manual_seed(0))
    z = torch.nn.functional.normalize(noise).requires_grad_()
    labels = torch.tensor([0, 0, 0, 2, 2, 5, 5])
    means = {c: z[labels == c].mean(0) for c in (0, 2, 5)}
    if unit:
        means = {c: mean / mean.norm() for c, mean in means.items()}
    concentration, total = 1 / 0.14, torch.zeros(())
    for i, label in enumerate(labels.tolist()):
        logits = {c: concentration * (z[i] @ mean) for c, mean in means.items()}
        total = total - logits[label] + torch.logsumexp(torch.stack([*logits.values()]), 0)
    loss = made.objective(z, labels)
    assert torch.allclose(loss, total, rtol=1e-5)
    (ours,), (theirs,) = torch.autograd.grad(loss, [z]), torch.autograd.grad(total, [z])
    assert torch.allclose(ours, theirs, atol=1e-4), "gradients flow through the means"


@pytest.mark.parametrize(
    ("fields", "said"),
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
def test_bad_numbers_are_refused_in_words(fields: dict[str, object], said: str) -> None:
    with pytest.raises(SteradError, match=said):
        build_learner(METHODS["agd-fd"], FixedDirectionsConfig(**fields), problem())  # type: ignore[arg-type]
