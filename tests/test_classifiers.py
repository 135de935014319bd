from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestCentroid
from torch import Tensor

from sterad.classifiers import (
    CLASSIFIERS,
    Classifier,
    LinearDiscriminant,
    NearestMean,
    RidgeRegression,
)
from sterad.classifiers.linear import PENALTIES


def cloud(n: int = 300, d: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return unit rows around one direction per class, for the classes 2, 3, 5 and 11."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.tensor([2, 3, 5, 11])[torch.randint(4, (n,), generator=rng)]
    centers = torch.randn(12, d, generator=rng)
    return F.normalize(centers[labels] + torch.randn(n, d, generator=rng)), labels


def predict(fitted: Classifier, features: Tensor) -> Tensor:
    return fitted.labels[fitted.scores(features).argmax(dim=1)]


def test_nearest_mean_agrees_with_scikit_learn() -> None:
    features, labels = cloud()
    others, _ = cloud(seed=1)
    fitted = NearestMean.fit([(features, labels)])
    expected = NearestCentroid().fit(features.numpy(), labels.numpy())
    assert np.array_equal(predict(fitted, others).numpy(), expected.predict(others.numpy()))
    np.testing.assert_allclose(fitted.means.numpy(), expected.centroids_, rtol=1e-5, atol=1e-7)
    assert fitted.labels.tolist() == expected.classes_.tolist()


def test_means_are_not_scaled_to_unit_length() -> None:
    # By hand: |(0.7, 0.714) - (0.5, 0)|² = 0.55 < |(0.7, 0.714) - (0, 1)|² = 0.57, so the first
    # class wins; scaled to (1, 0), its mean would be 0.60 away and lose.
    features = torch.tensor([[0.5, 0.75**0.5], [0.5, -(0.75**0.5)], [0.0, 1.0]])
    fitted = NearestMean.fit([(features, torch.tensor([0, 0, 1]))])
    assert torch.allclose(fitted.means, torch.tensor([[0.5, 0.0], [0.0, 1.0]]))
    assert predict(fitted, torch.tensor([[0.7, 0.714], [0.6, 0.8]])).tolist() == [0, 1]


def test_scores_are_gaussian_log_likelihoods() -> None:
    features, labels = cloud()
    fitted = NearestMean.fit([(features, labels)])
    class_means = fitted.means[torch.searchsorted(fitted.labels, labels)]
    assert fitted.variance == pytest.approx(
        (features - class_means).square().mean().item(), rel=1e-5
    )
    exact = -torch.cdist(features, fitted.means).square() / (2 * fitted.variance)
    probabilities = fitted.scores(features).softmax(dim=1)
    assert torch.allclose(probabilities, exact.softmax(dim=1), atol=1e-5)


def test_result_does_not_depend_on_the_batches() -> None:
    features, labels = cloud()
    whole = NearestMean.fit([(features, labels)])
    parts = NearestMean.fit(zip(features.split(7), labels.split(7), strict=True))
    assert torch.equal(whole.means, parts.means)
    assert whole.variance == parts.variance


def test_missing_classes_are_never_predicted() -> None:
    features, labels = cloud()
    kept = labels != 5
    fitted = NearestMean.fit([(features[kept], labels[kept])])
    assert fitted.labels.tolist() == [2, 3, 11]
    assert set(predict(fitted, features).tolist()) <= {2, 3, 11}


def test_one_image_per_class() -> None:
    features, labels = torch.eye(3), torch.tensor([8, 1, 4])
    fitted = NearestMean.fit([(features, labels)])
    assert predict(fitted, features).tolist() == [8, 1, 4]
    probabilities = fitted.scores(features).softmax(dim=1)
    assert torch.isfinite(probabilities).all()
    assert torch.allclose(probabilities.sum(dim=1), torch.ones(3))


def test_single_class_is_always_predicted() -> None:
    fitted = NearestMean.fit([(torch.eye(2), torch.tensor([6, 6]))])
    assert predict(fitted, torch.randn(4, 2, generator=torch.Generator())).tolist() == [6] * 4
    assert fitted.scores(torch.eye(2)).softmax(dim=1).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_every_classifier_separates_clusters(name: str) -> None:
    features, labels = F.normalize(torch.eye(3).repeat(20, 1) * 4 + 1), torch.tensor([7, 2, 5])
    fitted = CLASSIFIERS[name].fit([(features, labels.repeat(20))])
    assert fitted.labels.tolist() == [2, 5, 7]
    assert predict(fitted, features[:3]).tolist() == [7, 2, 5]


def literal_scores_of_lda(features: Tensor, labels: Tensor, others: Tensor) -> npt.NDArray[Any]:
    """Return log-likelihoods up to a constant per row, by loops and the formula of OAS."""
    x, y = features.double().numpy(), labels.numpy()
    classes = np.unique(y)
    means = [x[y == c].mean(axis=0) for c in classes]
    within = np.stack([x[i] - means[int(np.searchsorted(classes, y[i]))] for i in range(len(x))])
    covariance = sum(np.outer(row, row) for row in within) / len(within)
    (n, d), eigenvalues = within.shape, np.linalg.eigvalsh(covariance)
    squares, trace = (eigenvalues**2).sum(), eigenvalues.sum()
    share = ((1 - 2 / d) * squares + trace**2) / ((n + 1 - 2 / d) * (squares - trace**2 / d))
    covariance = (1 - share) * covariance + share * eigenvalues.mean() * np.eye(d)
    center = x.mean(0)
    rows = []
    for h in others.double().numpy() - center:
        row = []
        for mean in means:
            direction = np.linalg.solve(covariance, mean - center)
            row.append(h @ direction - (mean - center) @ direction / 2)
        rows.append(row)
    return np.array(rows)


def test_lda_agrees_with_loops() -> None:
    features, labels = cloud()
    others, _ = cloud(seed=1)
    scores = LinearDiscriminant.fit([(features, labels)]).scores(others)
    expected = literal_scores_of_lda(features, labels, others)
    np.testing.assert_allclose(scores.numpy(), expected, rtol=2e-5, atol=2e-5)


def test_lda_weighs_down_directions_in_which_all_classes_vary() -> None:
    rng = torch.Generator().manual_seed(0)
    noise = torch.randn(400, 2, generator=rng) * torch.tensor([5.0, 0.05])
    labels = torch.arange(400) % 2
    features = noise + torch.tensor([0.0, 0.5]) * labels.unsqueeze(1)
    fitted, means = (one.fit([(features, labels)]) for one in (LinearDiscriminant, NearestMean))
    assert (predict(fitted, features) == labels).float().mean() > 0.98
    assert (predict(means, features) == labels).float().mean() < 0.8


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_lda_of_collapsed_classes_is_the_nearest_mean(noise: float) -> None:
    features = torch.eye(3, 5).repeat(9, 1) + noise * torch.arange(135.0).reshape(27, 5) / 135
    labels = torch.tensor([8, 1, 4]).repeat(9)
    fitted = LinearDiscriminant.fit([(features, labels)])
    assert torch.isfinite(fitted.scores(features)).all()
    assert predict(fitted, features[:3]).tolist() == [8, 1, 4]


def test_ridge_chooses_its_penalty_by_leaving_out_each_row() -> None:
    features, labels = cloud(40)
    x, targets = features.double().numpy(), np.eye(12)[labels.numpy()][:, [2, 3, 5, 11]]
    variance = x.var(axis=0).mean()

    def left_out_error(penalty: float) -> float:
        error = 0.0
        for i in range(len(x)):
            others = np.arange(len(x)) != i
            fitted = Ridge(alpha=penalty * variance).fit(x[others], targets[others])
            error += ((fitted.predict(x[i : i + 1]) - targets[i]) ** 2).sum()
        return error

    best = min(PENALTIES, key=left_out_error)
    assert PENALTIES[0] < best < PENALTIES[-1]
    expected = Ridge(alpha=best * variance).fit(x, targets)
    others, _ = cloud(seed=1)
    scores = RidgeRegression.fit([(features, labels)]).scores(others).numpy()
    np.testing.assert_allclose(scores, expected.predict(others.double().numpy()), atol=1e-5)


@pytest.mark.parametrize("name", ["lda", "ridge"])
def test_closed_forms_take_a_single_row(name: str) -> None:
    fitted = CLASSIFIERS[name].fit([(torch.eye(3)[:1], torch.tensor([6]))])
    assert torch.isfinite(fitted.scores(torch.eye(3))).all()
    assert predict(fitted, torch.eye(3)).tolist() == [6, 6, 6]
