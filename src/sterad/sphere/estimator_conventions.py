"""The conventions of scikit-learn for estimators, implemented because it is optional."""

import inspect
import numbers
import warnings
from collections.abc import Sequence
from typing import Any, Self

import torch

from sterad.errors import SteradError, suggest_name
from sterad.sphere.rows import RowsTypeError


class EstimatorParameters:
    """Arguments of the constructor as parameters, in the way of scikit-learn's BaseEstimator."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        arguments = inspect.signature(cls).parameters.values()
        return {argument.name: argument.default for argument in arguments}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor; `deep` has no effect."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor, which apply from the next fit on."""
        known = self._defaults()
        for name in params:
            if name not in known:
                raise SteradError(
                    f"{type(self).__name__} has no parameter {name!r}: "
                    f"{suggest_name(name, known)}known are {', '.join(known)}"
                )
        vars(self).update(params)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not self._defaults()[name] and value != self._defaults()[name]
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def torch_generator(random_state: Any) -> torch.Generator:
    """Return a generator from a seed, a generator of numpy, or entropy for None.

    >>> torch_generator(3).initial_seed()
    3
    """
    generator = torch.Generator("cpu")
    if random_state is None:
        generator.seed()
    elif isinstance(random_state, torch.Generator):
        return random_state
    elif isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        generator.manual_seed(int(random_state))
    elif hasattr(random_state, "integers"):
        generator.manual_seed(int(random_state.integers(2**31)))
    elif hasattr(random_state, "randint"):
        generator.manual_seed(int(random_state.randint(2**31 - 1)))
    else:
        raise SteradError(
            f"random_state is {random_state!r}: give a whole number, a generator, or None"
        )
    return generator


def column_names(x: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a data frame, if all are strings."""
    columns = getattr(x, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(columns)
    kinds = {isinstance(name, str) for name in names}
    if kinds == {True, False}:
        raise RowsTypeError(
            "Feature names are only supported if all input features have string names: rename the "
            "columns that are not strings"
        )
    return tuple(names) if kinds == {True} else None


def check_names(names: Sequence[str] | None, fitted: Sequence[str] | None, owner: str) -> None:
    """Refuse columns with other names than in the fit, and warn if only one side has names."""
    if names is None and fitted is None:
        return
    if names is None or fitted is None:
        has, was = ("does not have valid", "with") if names is None else ("has", "without")
        warnings.warn(
            f"X {has} feature names, but {owner} was fitted {was} feature names", stacklevel=4
        )
    elif list(names) != list(fitted):
        raise SteradError(describe_difference(names, fitted))


def describe_difference(names: Sequence[str], fitted: Sequence[str]) -> str:
    """Return how the names of columns differ from those of the fit, in scikit-learn's words."""
    lines = ["The feature names should match those that were passed during fit."]
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if unseen:
        lines += ["Feature names unseen at fit time:", *(f"- {name}" for name in unseen[:5])]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:"]
        lines += [f"- {name}" for name in missing[:5]]
    if not unseen and not missing:
        lines += ["Feature names must be in the same order as they were in fit."]
    return "\n".join(lines) + "\n"
