"""Values from a file, checked against the fields of a frozen dataclass."""

import contextlib
import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

from sterad.errors import SteradError


def build(cls: type[Any], values: Mapping[str, Any]) -> Any:
    """Return `cls(**values)` with every value checked against the type of its field."""
    hints = typing.get_type_hints(cls)
    for name in values:
        if name not in names_of(cls):
            raise unknown(name, names_of(cls), cls.__name__)
    return cls(**{name: checked(name, value, hints[name]) for name, value in values.items()})


def names_of(cls: type[Any]) -> list[str]:
    """Return the names of a dataclass's fields."""
    return [field.name for field in dataclasses.fields(cls)]


def checked(name: str, value: Any, hint: Any) -> Any:
    """Return `value` as the type that `hint` asks for, or say why it is not one.

    >>> checked("lr", 1, float), checked("label_order", [1, 0], tuple[int, ...] | None)
    (1.0, (1, 0))
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        *others, last = (one for one in inner if one is not type(None))
        for other in others:
            with contextlib.suppress(SteradError):
                return checked(name, value, other)
        return checked(name, value, last)
    if origin is Literal:
        if value not in inner:
            raise SteradError(f"{name} = {value!r} is none of {', '.join(map(repr, inner))}")
        return value
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(checked(name, item, inner[0]) for item in value)
    # numpy's numbers become Python's, because neither JSON nor a checkpoint takes them.
    for kind, admitted in ((int, Integral), (float, Real)):
        if hint is kind and isinstance(value, admitted) and not isinstance(value, bool):
            return kind(value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    wanted = origin or hint
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise SteradError(
            f"{name} = {value!r} is a {type(value).__name__}: give it as {_spoken(hint)}"
        )
    return value


def _spoken(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint)) if typing.get_origin(hint) is None else str(hint)


def unknown(name: str, known: Iterable[str], where: str) -> SteradError:
    """Return the error for a name that no field has, with the nearest one that exists."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return SteradError(f"unknown field {name!r} in {where}: {hint}known are {', '.join(names)}")
