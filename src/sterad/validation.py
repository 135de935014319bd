"""Validation of values against the types and ranges that dataclass fields declare.

Configs, datasets, streams and options annotate fields with a `Range`. Values from the command line,
TOML files and Python calls are checked here, with the same error messages.
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
    """Numbers from `low` to `high`; an open end is excluded.

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
"""numpy's legacy generator, which draws label orders, accepts 32-bit seeds only."""

ADVANCED = {"advanced": True}
"""Metadata of fields that only --help-all shows."""

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
"""Other names of fields, accepted on the command line and in files."""

_DEFAULT_RANGES = {
    int: Range(-(2**63), 2**63 - 1),
    float: Range(-math.inf, math.inf, open_low=True, open_high=True),
}
"""Ranges of fields that declare none: 64-bit integers and finite floats."""


def resolve_field_name(name: str) -> str:
    """Return the field name for an option or a key of a file, which may be an alias.

    >>> resolve_field_name("memory-batch"), resolve_field_name("mem-size")
    ('memory_batch', 'memory')
    """
    name = name.replace("-", "_")
    return ALIASES.get(name, name)


def build(cls: type[Any], values: Mapping[str, Any]) -> Any:
    """Return `cls(**values)` with every value checked against the type and range of its field."""
    if not isinstance(values, Mapping):
        raise SteradError(f"the fields of {cls.__name__} are {values!r}: give names with values")
    hints = field_types(cls)
    for name in values:
        if name not in field_names(cls):
            raise unknown_field(name, field_names(cls), cls.__name__)
    return cls(**{name: check_value(name, value, hints[name]) for name, value in values.items()})


def check_fields(instance: Any) -> None:
    """Raise an error if a field of a dataclass instance has a wrong type or is out of range."""
    for name, hint in field_types(type(instance)).items():
        if name in field_names(type(instance)):
            check_value(name, getattr(instance, name), hint)


def field_names(cls: type[Any]) -> list[str]:
    """Return the names of a dataclass's fields."""
    return [field.name for field in dataclasses.fields(cls)]


def field_types(cls: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields with their ranges."""
    return typing.get_type_hints(cls, include_extras=True)


def check_value(name: str, value: Any, hint: Any) -> Any:
    """Return `value` converted to the type `hint`, or raise an error that says what is wrong.

    >>> check_value("lr", 1, float), check_value("label_order", [1, 0], tuple[int, ...] | None)
    (1.0, (1, 0))
    """
    plain, limits = _split_annotation(hint)
    origin, inner = typing.get_origin(plain), typing.get_args(plain)
    if origin in (typing.Union, types.UnionType):
        return _check_union(name, value, inner)
    if origin is Literal:
        if type(value) not in (str, int) or value not in inner:
            raise SteradError(f"{name} {value!r} is unknown: choose {_join_choices(inner)}")
        return value
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(check_value(name, item, inner[0]) for item in value)
    # numpy scalars become Python numbers, because JSON and checkpoints accept only those.
    for kind, abstract in ((int, Integral), (float, Real)):
        if plain is kind and isinstance(value, abstract) and not isinstance(value, bool):
            number = _convert_number(kind, value)
            return _check_range(name, number, limits or _DEFAULT_RANGES[kind], kind)
    if plain is Path and isinstance(value, str):
        return Path(value)
    expected = origin or plain
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise SteradError(
            f"{name} {value!r} is of type {type(value).__name__}: give {describe(hint)}"
        )
    return value


def parse_value(name: str, texts: Sequence[str], hint: Any) -> Any:
    """Return the value of command-line arguments, checked by `check_value`.

    >>> parse_value("memory", ["none"], int | None), parse_value("s", ["1", "2"], tuple[int, ...])
    (None, (1, 2))
    """
    plain, _ = _split_annotation(hint)
    inner = typing.get_args(plain)
    if typing.get_origin(plain) is tuple:
        return tuple(parse_value(name, [text], inner[0]) for text in texts)
    if typing.get_origin(plain) in (typing.Union, types.UnionType):
        if len(texts) == 1 and texts[0].lower() == "none":
            return None
        return parse_value(name, texts, next(t for t in inner if t is not type(None)))
    text = texts[-1]
    if not text:
        raise SteradError(f"{name} is empty: give {describe(hint)}")
    value = _convert_text(text, plain, inner)
    if plain in (bool, int, float) and isinstance(value, str):
        raise SteradError(f"{name} {text!r} cannot be parsed: give {describe(hint)}")
    return check_value(name, value, hint)


def describe(hint: Any) -> str:
    """Return in words which values a field accepts.

    >>> describe(Count), describe(BelowOne), describe(Literal["adam", "sgd"])
    ('an integer from 1 to 1,000,000', 'a number in [0, 1)', 'adam or sgd')
    """
    plain, limits = _split_annotation(hint)
    origin, inner = typing.get_origin(plain), typing.get_args(plain)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("none" if t is type(None) else describe(t) for t in inner)
    if origin is Literal:
        return _join_choices(inner)
    if origin is tuple:
        return f"a list, each item {describe(inner[0])}"
    if plain is int:
        interval = f" from {limits.low:,.0f} to {limits.high:,.0f}" if limits else ""
        return f"an integer{interval}"
    if plain is float:
        return f"a number in {limits}" if limits else "a finite number"
    words = {bool: "true or false", str: "text", Path: "a path"}
    return words.get(plain, getattr(plain, "__name__", str(plain)))


def unknown_field(name: str, known: Iterable[str], where: str) -> SteradError:
    """Return the error for an unknown field name, with the nearest known one."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return SteradError(f"unknown field {name!r} in {where}: {hint}known are {', '.join(names)}")


def _split_annotation(hint: Any) -> tuple[Any, Range | None]:
    """Return a type without its annotations, and its range if it has one."""
    if typing.get_origin(hint) is not Annotated:
        return hint, None
    plain, *metadata = typing.get_args(hint)
    return plain, next((item for item in metadata if isinstance(item, Range)), None)


def _check_union(name: str, value: Any, inner: Sequence[Any]) -> Any:
    if value is None and type(None) in inner:
        return None
    *others, last = (t for t in inner if t is not type(None))
    for hint in others:
        with contextlib.suppress(SteradError):
            return check_value(name, value, hint)
    return check_value(name, value, last)


def _convert_number(kind: type[Any], value: Any) -> Any:
    try:
        return kind(value)
    except OverflowError:  # an integer too large for a float
        return math.inf


def _check_range(name: str, value: Any, limits: Range, kind: type[Any]) -> Any:
    if value not in limits:
        hint = kind if limits in _DEFAULT_RANGES.values() else Annotated[kind, limits]
        is_huge = kind is int and value.bit_length() > 64
        shown = f"with {value.bit_length()} bits" if is_huge else repr(value)
        raise SteradError(f"{name} {shown} is out of range: give {describe(hint)}")
    return value


def _convert_text(text: str, plain: Any, inner: Sequence[Any]) -> Any:
    """Return the text converted to a type, or the text itself if that is not possible."""
    if plain is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if typing.get_origin(plain) is Literal:
        return next((choice for choice in inner if str(choice) == text), text)
    if plain in (int, float):
        with contextlib.suppress(ValueError):
            return plain(text)
    return text


def _join_choices(choices: Sequence[Any]) -> str:
    *others, last = map(str, choices)
    return f"{', '.join(others)} or {last}" if others else last
