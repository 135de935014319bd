"""OnlineClassifier: a scikit-learn classifier that learns classes from a feed."""

from sterad.estimator.classifier import OnlineClassifier

__all__ = ["OnlineClassifier"]
