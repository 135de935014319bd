"""Field values: the types and ranges that dataclass fields declare, checked in one place.

Configs, datasets, streams and options annotate a field with a `Range`; the command line, TOML files
and Python calls are all checked against it, with the same sentences.
"""

import contextlib
import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal

from sterad.errors import SteradError


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; an open end does not belong to them.

    >>> 1 in Range(0, 1), 1 in Range(0, 1, open_high=True), float("nan") in Range(0, 1)
    (True, False, False)
    """

    low: float
    high: float
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        return above and (value < self.high if self.open_high else value <= self.high)

    def __str__(self) -> str:
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        return f"{left}{self.low:g}, {self.high:g}{right}"


Positive = Annotated[float, Range(0, 1e6, open_low=True)]
NonNegative = Annotated[float, Range(0, 1e6)]
Share = Annotated[float, Range(0, 1)]
BelowOne = Annotated[float, Range(0, 1, open_high=True)]
Count = Annotated[int, Range(1, 1_000_000)]
BatchSize = Annotated[int, Range(1, 100_000)]
MemorySize = Annotated[int, Range(0, 1_000_000_000)]
Views = Annotated[int, Range(0, 1000)]
Scale = Annotated[float, Range(0, 1e9, open_low=True)]
PerCent = Annotated[float, Range(0, 100)]
Width = Annotated[int, Range(1, 4096)]
Dimension = Annotated[int, Range(1, 65_536)]
Seed = Annotated[int, Range(0, 2**32 - 1)]
"""numpy's legacy generator, which draws label orders, takes seeds of 32 bits."""

ADVANCED = {"advanced": True}
"""Metadata of fields that the command line shows with --help-all only."""

ADDED = {"added": True}
"""Metadata of fields added after runs were recorded: at their default they are not in the id."""

ALIASES = {
    "answers_by": "predict_with",
    "buffer_size": "memory",
    "least_lr": "min_lr",
    "mem_size": "memory",
    "memory_size": "memory",
    "n_tasks": "tasks",
    "num_tasks": "tasks",
    "optimiser": "optimizer",
    "second_moment": "beta2",
    "recipe": "augmentation",
    "sink": "logger",
    "write": "save_tuned",
}
"""Other names of fields, on the command line and in files."""

_ANY = {int: Range(-(2**63), 2**63 - 1), float: Range(-math.inf, math.inf, True, True)}
"""Where a field declares no range: integers that fit 64 bits, finite floats."""


def field_named(name: str) -> str:
    """Return the field that a name on the command line or in a file means.

    >>> field_named("memory-batch"), field_named("mem-size")
    ('memory_batch', 'memory')
    """
    plain = name.replace("-", "_")
    return ALIASES.get(plain, plain)


def build(cls: type[Any], values: Mapping[str, Any]) -> Any:
    """Return `cls(**values)` with every value checked against the type and range of its field."""
    if not isinstance(values, Mapping):
        raise SteradError(f"the fields of {cls.__name__} are {values!r}: give names with values")
    hints = hints_of(cls)
    for name in values:
        if name not in names_of(cls):
            raise unknown(name, names_of(cls), cls.__name__)
    return cls(**{name: checked(name, value, hints[name]) for name, value in values.items()})


def check_fields(instance: Any) -> None:
    """Refuse a dataclass instance that holds a value outside the type or range of its field."""
    for name, hint in hints_of(type(instance)).items():
        if name in names_of(type(instance)):
            checked(name, getattr(instance, name), hint)


def names_of(cls: type[Any]) -> list[str]:
    """Return the names of a dataclass's fields."""
    return [field.name for field in dataclasses.fields(cls)]


def hints_of(cls: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields with their ranges."""
    return typing.get_type_hints(cls, include_extras=True)


def checked(name: str, value: Any, hint: Any) -> Any:
    """Return `value` as the type that `hint` asks for, or say why it is not one.

    >>> checked("lr", 1, float), checked("label_order", [1, 0], tuple[int, ...] | None)
    (1.0, (1, 0))
    """
    plain, limits = _split(hint)
    origin, inner = typing.get_origin(plain), typing.get_args(plain)
    if origin in (typing.Union, types.UnionType):
        return _one_of(name, value, inner)
    if origin is Literal:
        if type(value) not in (str, int) or value not in inner:
            raise SteradError(f"{name} {value!r} is unknown: choose {_either(inner)}")
        return value
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(checked(name, item, inner[0]) for item in value)
    # numpy's numbers become Python's, because neither JSON nor a checkpoint takes them.
    for kind, admitted in ((int, Integral), (float, Real)):
        if plain is kind and isinstance(value, admitted) and not isinstance(value, bool):
            return _in_range(name, _converted(kind, value), limits or _ANY[kind], kind)
    if plain is Path and isinstance(value, str):
        return Path(value)
    wanted = origin or plain
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise SteradError(
            f"{name} {value!r} is of type {type(value).__name__}: give {describe(hint)}"
        )
    return value


def parsed(name: str, texts: Sequence[str], hint: Any) -> Any:
    """Return the value that the words of a command line mean, checked as `checked` does.

    >>> parsed("memory", ["none"], int | None), parsed("seeds", ["1", "2"], tuple[int, ...])
    (None, (1, 2))
    """
    plain, _ = _split(hint)
    inner = typing.get_args(plain)
    if typing.get_origin(plain) is tuple:
        return tuple(parsed(name, [text], inner[0]) for text in texts)
    if typing.get_origin(plain) in (typing.Union, types.UnionType):
        if len(texts) == 1 and texts[0].lower() == "none":
            return None
        return parsed(name, texts, next(one for one in inner if one is not type(None)))
    text = texts[-1]
    if not text:
        raise SteradError(f"{name} is empty: give {describe(hint)}")
    value = _read(text, plain, inner)
    if plain in (bool, int, float) and isinstance(value, str):
        raise SteradError(f"{name} {text!r} is not possible: give {describe(hint)}")
    return checked(name, value, hint)


def describe(hint: Any) -> str:
    """Say in words what a field takes.

    >>> describe(Count), describe(BelowOne), describe(Literal["adam", "sgd"])
    ('an integer from 1 to 1,000,000', 'a number in [0, 1)', 'adam or sgd')
    """
    plain, limits = _split(hint)
    origin, inner = typing.get_origin(plain), typing.get_args(plain)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("none" if one is type(None) else describe(one) for one in inner)
    if origin is Literal:
        return _either(inner)
    if origin is tuple:
        return f"a list, each of them {describe(inner[0])}"
    if plain is int:
        words = f" from {limits.low:,.0f} to {limits.high:,.0f}" if limits else ""
        return f"an integer{words}"
    if plain is float:
        return f"a number in {limits}" if limits else "a finite number"
    names = {bool: "true or false", str: "text", Path: "a path"}
    return names.get(plain, getattr(plain, "__name__", str(plain)))


def unknown(name: str, known: Iterable[str], where: str) -> SteradError:
    """Return the error for a name that no field has, with the nearest one that exists."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return SteradError(f"unknown field {name!r} in {where}: {hint}known are {', '.join(names)}")


def _split(hint: Any) -> tuple[Any, Range | None]:
    """Return a type without its annotations, and the range among them."""
    if typing.get_origin(hint) is not Annotated:
        return hint, None
    plain, *extras = typing.get_args(hint)
    return plain, next((one for one in extras if isinstance(one, Range)), None)


def _one_of(name: str, value: Any, inner: Sequence[Any]) -> Any:
    if value is None and type(None) in inner:
        return None
    *others, last = (one for one in inner if one is not type(None))
    for other in others:
        with contextlib.suppress(SteradError):
            return checked(name, value, other)
    return checked(name, value, last)


def _converted(kind: type[Any], value: Any) -> Any:
    try:
        return kind(value)
    except OverflowError:  # an integer of hundreds of digits where a float is wanted
        return math.inf


def _in_range(name: str, value: Any, limits: Range, kind: type[Any]) -> Any:
    if value not in limits:
        hint = kind if limits in _ANY.values() else Annotated[kind, limits]
        huge = kind is int and value.bit_length() > 64
        shown = f"with {value.bit_length()} bits" if huge else repr(value)
        raise SteradError(f"{name} {shown} is out of range: give {describe(hint)}")
    return value


def _read(text: str, plain: Any, inner: Sequence[Any]) -> Any:
    """Return the value of a word, or the word itself where it has no such value."""
    words = {"true": True, "false": False}
    if plain is bool:
        return words.get(text.lower(), text)
    if typing.get_origin(plain) is Literal:
        return next((one for one in inner if str(one) == text), text)
    if plain in (int, float):
        with contextlib.suppress(ValueError):
            return plain(text)
    return text


def _either(options: Sequence[Any]) -> str:
    *others, last = map(str, options)
    return f"{', '.join(others)} or {last}" if others else last
