"""Whether the fields of a dataclass, read from JSON, have their declared types."""

import dataclasses
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_JSON_TYPES: dict[Any, set[type]] = {
    **{kind: {kind} for kind in (int, bool, str, type(None))},
    float: {int, float},
    float | None: {int, float, type(None)},
}
"""Types of values that each declared type accepts."""


def find_wrong_field(value: Any) -> str | None:
    """Return the first field of a dataclass that does not have the declared type."""
    cls: Any = type(value)
    hints = _type_hints(cls)
    return next((name for name in hints if not _has_type(getattr(value, name), hints[name])), None)


@cache
def _type_hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _has_type(value: Any, hint: Any) -> bool:
    inner = get_args(hint)
    if hint in _JSON_TYPES:
        return type(value) in _JSON_TYPES[hint]
    if get_origin(hint) is tuple:
        has_length = inner[-1] is ... or (type(value) is tuple and len(value) == len(inner))
        if type(value) is not tuple or not has_length:
            return False
        if inner[0] in _JSON_TYPES and inner[-1] in (..., inner[0]):
            return {*map(type, value)} <= _JSON_TYPES[inner[0]]  # rows of numbers
        return all(map(_has_type, value, inner[:1] * len(value) if inner[-1] is ... else inner))
    if get_origin(hint) is UnionType:
        return any(_has_type(value, one) for one in inner)
    if dataclasses.is_dataclass(hint):
        return type(value) is hint and find_wrong_field(value) is None
    return isinstance(value, dict)
