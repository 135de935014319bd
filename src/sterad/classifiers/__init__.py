"""Stage 9: classifiers, from features to classes.

A classifier is fitted to the features of the memory when a learner consolidates. It then scores
features; the class with the highest score is predicted, and the softmax of the scores is the
predicted probability. Fits are in float64, on the CPU for features on MPS, which has no float64.
"""

from sterad.classifiers.classifier import CLASSIFIERS, MIN_VARIANCE, Batches, Classifier
from sterad.classifiers.linear import LinearDiscriminant, RidgeRegression
from sterad.classifiers.nearest_mean import NearestMean, NearestUnitMean
from sterad.classifiers.nearest_neighbors import NearestNeighbors
from sterad.classifiers.probes import LinearProbe, StandardizedProbe

__all__ = [
    "CLASSIFIERS",
    "MIN_VARIANCE",
    "Batches",
    "Classifier",
    "LinearDiscriminant",
    "LinearProbe",
    "NearestMean",
    "NearestNeighbors",
    "NearestUnitMean",
    "RidgeRegression",
    "StandardizedProbe",
]
