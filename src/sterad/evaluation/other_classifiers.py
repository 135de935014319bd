"""Other classifiers on the features of the same network, evaluated beside the method's own.

A name is the head, a registered classifier, which is fitted to the memory at each evaluation, or
`train:` and a registered classifier, which is fitted to the features of all training images of the
stream once, after the last batch. The last kind is no result of continual learning: it measures
what the features are good for. Nothing here draws random numbers or changes what is learned.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from sterad.classifiers import CLASSIFIERS, Classifier
from sterad.errors import SteradError
from sterad.evaluation.evaluate import EvaluationResult, Labels, evaluate_predictions, map_images
from sterad.methods import Learner
from sterad.methods.base.replay import Replay
from sterad.streams import Stream
from sterad.streams.domain_transforms import DomainTransform

ON_TRAINING_IMAGES = "train:"
"""Prefix of classifiers that are fitted to all training images at the end."""


def check_names(names: Sequence[str], learner: Learner) -> None:
    """Refuse names that are unknown, given twice or those of what predicts anyway."""
    if not names:
        return
    if not isinstance(learner, Replay):
        raise SteradError(
            f"also_evaluate={' '.join(names)} needs a network that is trained from images: "
            "leave it out for this method"
        )
    known = [*CLASSIFIERS, *(f"{ON_TRAINING_IMAGES}{name}" for name in CLASSIFIERS)]
    if learner.head_classifier is not None:
        known = [learner.head_classifier, *known]
    known = [name for name in known if name != learner.config.classifier]
    for name in names:
        if name not in known:
            raise SteradError(
                f"also_evaluate names {name!r}, which is unknown or predicts anyway: choose among "
                f"{', '.join(known)}"
            )
        if names.count(name) > 1:
            raise SteradError(f"also_evaluate names {name!r} twice: name it once")


class OtherClassifiers:
    """The classifiers of one evaluation; features of test images are computed once for all."""

    def __init__(self, learner: Replay, stream: Stream) -> None:
        """Compute nothing yet."""
        self.learner, self.stream = learner, stream
        self._features: dict[DomainTransform | None, Tensor] = {}
        """Of the test images under each transformation."""

    def evaluate(self, name: str, samples: int) -> EvaluationResult:
        """Return the accuracies of a classifier after `samples` images of the stream."""
        predict = self.by_head
        if name != self.learner.head_classifier:
            predict = partial(self.by_classifier, self.fit(name))
        return evaluate_predictions(predict, self.learner.seen.numpy(), self.stream, samples)

    def fit(self, name: str) -> Classifier:
        """Return the classifier, fitted to the memory or to all training images."""
        if name.startswith(ON_TRAINING_IMAGES):
            data, indices = self.stream.dataset, np.unique(self.stream.order)
            features = map_images(self.learner.features, data.train_images, indices)
            labels = torch.from_numpy(data.train_labels[indices]).to(features.device)
            return CLASSIFIERS[name.removeprefix(ON_TRAINING_IMAGES)].fit([(features, labels)])
        return CLASSIFIERS[name].fit(self.learner.memory_features())

    def by_head(self, indices: Labels, transform: DomainTransform | None) -> Labels:
        """Return the predictions of the head."""

        def predict(x: Tensor) -> Tensor:
            scores, labels = self.learner.immediate_scores(x)
            return labels[scores.argmax(dim=1)]

        predicted: Labels = map_images(
            predict, self.stream.dataset.test_images, indices, transform
        ).numpy()
        return predicted

    def by_classifier(
        self, classifier: Classifier, indices: Labels, transform: DomainTransform | None
    ) -> Labels:
        """Return the predictions of a fitted classifier."""
        if transform not in self._features:
            images = self.stream.dataset.test_images
            features = map_images(self.learner.features, images, indices, transform)
            self._features[transform] = features
        best = classifier.scores(self._features[transform]).argmax(dim=1)
        predicted: Labels = classifier.labels[best].cpu().numpy()
        return predicted
