import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.neighbors import NearestCentroid
from torch import Tensor

from sterad.classifiers import CLASSIFIERS, Classifier, NearestMean


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
