"""RiverClassifier: OnlineClassifier in pipelines of river, which learn one dictionary at a time."""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sterad.errors import SteradError
from sterad.estimator import OnlineClassifier


def _base_class() -> Any:
    """Return river's base class of classifiers, or `object` if river is not installed."""
    try:
        return importlib.import_module("river.base").Classifier
    except ImportError:
        return object


_Base = _base_class()


class RiverClassifier(_Base):  # type: ignore[misc,valid-type]
    """An `OnlineClassifier` with the methods of river: learn_one, predict_one, predict_proba_one.

    The features of the first dictionary, sorted by name, are the inputs. A feature that is missing
    later counts as 0, and one that was not there at first is ignored.

    >>> model = RiverClassifier("er", memory=20, width=2)
    >>> for step in range(20):
    ...     model.learn_one({"x": step % 2, "y": 1.0}, "odd" if step % 2 else "even")
    >>> sorted(model.predict_proba_one({"y": 1.0, "x": 1}))
    ['even', 'odd']
    """

    def __init__(self, method: Any = "agd-fd", memory: Any = 500, **arguments: Any) -> None:
        """Take the arguments of `OnlineClassifier`."""
        self.method, self.memory, self.arguments = method, memory, arguments
        self._model = OnlineClassifier(method, memory, **arguments)
        self._names: list[Any] = []

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn from one dictionary of numbers and its label."""
        names = self._names or sorted(x, key=str)
        self._model.partial_fit(_row(x, names), [y])
        self._names = names

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each label; an empty dictionary before anything is learned."""
        if not self._names:
            return {}
        probabilities = self._model.predict_proba(_row(x, self._names))[0]
        return dict(zip(self._model.classes_.tolist(), probabilities.tolist(), strict=True))

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> Any:
        """Return the most probable label; None before anything is learned."""
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=probabilities.__getitem__) if probabilities else None


def _row(x: Mapping[Any, Any], names: list[Any]) -> npt.NDArray[np.float64]:
    """Return the values of the named features: (1, d)."""
    try:
        return np.array([[float(x.get(name, 0.0)) for name in names]])
    except (TypeError, ValueError) as error:
        raise SteradError(
            f"a feature is no number ({error}): encode it before, for example with river's "
            "OneHotEncoder"
        ) from error
