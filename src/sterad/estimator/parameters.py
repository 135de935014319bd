"""Parameters: the conventions of scikit-learn for the arguments of a constructor.

They are implemented here because scikit-learn is an optional dependency.
"""

import html
import inspect
import warnings
from typing import Any, Self

from sterad.errors import SteradError
from sterad.methods import METHODS, Learner
from sterad.validation import field_names, unknown_field


class Parameters:
    """An estimator whose constructor arguments are its public attributes.

    Arguments beyond the signature are fields of the method. Values are stored as they are given
    and checked when learning starts.
    """

    method: Any
    _estimator_type = "classifier"

    def _set_fields(self, fields: dict[str, Any]) -> None:
        """Store fields of the method, also those in the argument `fields` of earlier versions."""
        given = fields.get("fields")
        if isinstance(given, dict):
            warnings.warn(
                "fields={...} is deprecated: give the fields of the method as keywords",
                DeprecationWarning,
                stacklevel=3,
            )
            fields = {name: one for name, one in fields.items() if name != "fields"} | given
        self._check_names(self.method, set(fields) - {"fields"})
        vars(self).update(fields)

    def _check_names(self, method: Any, names: Any) -> None:
        """Refuse names that are no fields of the method; an unknown method is refused later."""
        known = _fields_of(method)
        for name in names:
            if known is not None and name not in known:
                raise unknown_field(name, {*known, *_defaults(type(self))}, type(self).__name__)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all arguments of the constructor and the fields of the method that were given.

        deep: no effect, because no argument is an estimator.
        """
        return {
            name: value
            for name, value in sorted(vars(self).items())
            if not (name.startswith("_") or name.endswith("_"))
        }

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor and fields of the method, and return the estimator.

        They apply from the next call of `fit` on; a classifier that has learned continues with
        those that it was built with, but for `batch_size` and `on_divergence`.
        """
        known = _defaults(type(self))
        before = dict(vars(self))
        vars(self).update({name: one for name, one in params.items() if name in known})
        try:
            self._set_fields({name: one for name, one in params.items() if name not in known})
        except SteradError:
            vars(self).update(before)
            raise
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._changed_arguments())})"

    def _repr_html_(self) -> str:
        """Return the representation for notebooks, with all arguments on demand."""
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(repr(value))}</td></tr>"
            for name, value in self.get_params().items()
        )
        return (
            f"<details><summary><code>{html.escape(repr(self))}</code></summary>"
            f"<table>{rows}</table></details>"
        )

    def _changed_arguments(self) -> list[str]:
        defaults = _defaults(type(self))
        values = {name: getattr(self, name) for name in defaults} | self.get_params()
        return [
            repr(value) if name == "method" else f"{name}={value!r}"
            for name, value in values.items()
            if name == "method" or name not in defaults or not _is_equal(value, defaults[name])
        ]

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn; only scikit-learn calls this."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(three_d_array=True),
        )


def _fields_of(method: Any) -> list[str] | None:
    """Return the names of the fields of a method; None if there is no such method."""
    if isinstance(method, str) and method in METHODS:
        return field_names(METHODS[method].Config)
    if isinstance(method, type) and issubclass(method, Learner):
        return field_names(method.Config)
    return None


def _defaults(cls: type[Any]) -> dict[str, Any]:
    """Return the arguments in the signature of a constructor, with their defaults."""
    parameters = inspect.signature(cls).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is not one.VAR_KEYWORD}


def _is_equal(value: Any, default: Any) -> bool:
    """Return whether an argument has its default value; arrays and objects have not."""
    return value is default or (type(value) is type(default) and repr(value) == repr(default))
