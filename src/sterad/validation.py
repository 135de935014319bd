"""Validation of values against the types and ranges that dataclass fields declare.

Configs, datasets, streams and options annotate fields with a `Range`. Values from the command line,
TOML files and Python calls are checked here, with the same error messages.
"""

import contextlib
import dataclasses
import math
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal

from sterad.errors import SteradError, suggest_name


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

OMIT_DEFAULT_FROM_ID = {"omit_default_from_id": True}
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
_BOOLEANS = {"true": True, "false": False}


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
        if name not in hints:
            raise unknown_field(name, hints, cls.__name__)
    return cls(**{name: check_value(name, value, hints[name]) for name, value in values.items()})


def check_fields(instance: Any) -> None:
    """Raise an error if a field of a dataclass instance has a wrong type or is out of range."""
    for name, hint in field_types(type(instance)).items():
        check_value(name, getattr(instance, name), hint)


def field_names(cls: type[Any]) -> list[str]:
    """Return the names of a dataclass's fields."""
    return [field.name for field in dataclasses.fields(cls)]


def field_types(cls: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields with their ranges."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {name: hints[name] for name in field_names(cls)}


def union_members(hint: Any) -> list[Any]:
    """Return the types that a field accepts beside None; one, unless it is a union.

    >>> union_members(int | str | None), union_members(bool)
    ([<class 'int'>, <class 'str'>], [<class 'bool'>])
    """
    members = typing.get_args(hint) if _is_union(hint) else (hint,)
    return [member for member in members if member is not type(None)]


def check_value(name: str, value: Any, hint: Any) -> Any:
    """Return `value` converted to the type `hint`, or raise an error that says what is wrong.

    >>> check_value("lr", 1, float), check_value("label_order", [1, 0], tuple[int, ...] | None)
    (1.0, (1, 0))
    """
    plain, _ = _split_annotation(hint)
    if _is_union(plain):
        return _check_union(name, value, plain)
    origin, inner = typing.get_origin(plain), typing.get_args(plain)
    if origin is Literal:
        if type(value) not in (str, int) or value not in inner:
            raise SteradError(f"{name} {value!r} is unknown: choose {describe(hint)}")
        return value
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(check_value(name, item, inner[0]) for item in value)
    abstract = {int: Integral, float: Real}.get(plain)
    if abstract and isinstance(value, abstract) and not isinstance(value, bool):
        return _check_number(name, value, hint)
    if plain is Path and isinstance(value, str):
        return Path(value)
    if abstract or not isinstance(value, origin or plain):
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
    if _is_union(plain):
        if [text.lower() for text in texts] == ["none"]:
            return None
        first, *others = union_members(plain)
        for member in others:  # words, such as natural beside a list of numbers
            if typing.get_origin(member) is Literal and texts[-1] in typing.get_args(member):
                return check_value(name, texts[-1], member)
        return parse_value(name, texts, first)
    origin, inner = typing.get_origin(plain), typing.get_args(plain)
    if origin is tuple:
        return tuple(parse_value(name, [text], inner[0]) for text in texts)
    text = texts[-1]
    if not text:
        raise SteradError(f"{name} is empty: give {describe(hint)}")
    value: Any = text
    if origin is Literal:
        value = next((choice for choice in inner if str(choice) == text), text)
    elif plain in (bool, int, float):
        try:
            value = _BOOLEANS[text.lower()] if plain is bool else plain(text)
        except (KeyError, ValueError):
            message = f"{name} {text!r} cannot be parsed: give {describe(hint)}"
            raise SteradError(message) from None
    return check_value(name, value, hint)


def describe(hint: Any) -> str:
    """Return in words which values a field accepts.

    >>> describe(Count), describe(BelowOne), describe(Literal["adam", "sgd"])
    ('an integer from 1 to 1,000,000', 'a number in [0, 1)', 'adam or sgd')
    """
    plain, limits = _split_annotation(hint)
    origin, inner = typing.get_origin(plain), typing.get_args(plain)
    if _is_union(plain):
        return " or ".join("none" if t is type(None) else describe(t) for t in inner)
    if origin is Literal:
        *others, last = map(str, inner)
        return f"{', '.join(others)} or {last}" if others else last
    if origin is tuple:
        return f"a list, each item {describe(inner[0])}"
    if plain is int:
        return (
            f"an integer from {limits.low:,.0f} to {limits.high:,.0f}" if limits else "an integer"
        )
    if plain is float:
        return f"a number in {limits}" if limits else "a finite number"
    words = {bool: "true or false", str: "text", Path: "a path"}
    return words.get(plain, getattr(plain, "__name__", str(plain)))


def unknown_field(name: str, known: Iterable[str], where: str) -> SteradError:
    """Return the error for an unknown field name, with the nearest known one."""
    names = sorted(known)
    near = suggest_name(name, names)
    return SteradError(f"unknown field {name!r} in {where}: {near}known are {', '.join(names)}")


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _split_annotation(hint: Any) -> tuple[Any, Range | None]:
    """Return a type without its annotations, and its range if it has one."""
    if typing.get_origin(hint) is not Annotated:
        return hint, None
    plain, *metadata = typing.get_args(hint)
    return plain, next((item for item in metadata if isinstance(item, Range)), None)


def _check_union(name: str, value: Any, hint: Any) -> Any:
    if value is None and type(None) in typing.get_args(hint):
        return None
    *others, last = union_members(hint)
    for member in others:
        with contextlib.suppress(SteradError):
            return check_value(name, value, member)
    return check_value(name, value, last)


def _check_number(name: str, value: Any, hint: Any) -> Any:
    """Return a Python number: JSON and checkpoints do not accept numpy scalars."""
    kind, limits = _split_annotation(hint)
    try:
        number = kind(value)
    except OverflowError:  # an integer too large for a float
        number = math.inf
    if number not in (limits or _DEFAULT_RANGES[kind]):
        is_huge = kind is int and number.bit_length() > 64
        shown = f"with {number.bit_length()} bits" if is_huge else repr(number)
        raise SteradError(f"{name} {shown} is out of range: give {describe(hint)}")
    return number
