"""TOML files written by users: reading them, and finding the line that an error is about."""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sterad.errors import SteradError
from sterad.validation import field_names, resolve_field_name, unknown_field

_SUBJECT = re.compile(r"(the axis )?'([^']+)'|^([\w.-]+) (?:= |is |-?\d|[\"'\[])")
"""The name that an error message is about: the first quoted name, or the first word."""


def read_toml(file: str | Path, kind: str) -> dict[str, Any]:
    """Return the values of a file; `kind`, such as "the study", is used in error messages."""
    try:
        return parse_toml(Path(file).read_text())
    except OSError as error:
        raise SteradError(f"cannot read {kind} {str(file)!r}: {error.strerror}") from error
    except Exception as error:  # tomllib raises more than TOMLDecodeError
        raise SteradError(f"{kind} {str(file)!r} is not TOML: {error}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raise ValueError for integers of more than 64 bits, as TOML requires."""
    values = tomllib.loads(text)
    pending: list[Any] = [values]
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list):
            pending += value.values() if isinstance(value, dict) else value
        elif isinstance(value, int) and value.bit_length() > 64:
            raise ValueError(f"it has an integer of {value.bit_length()} bits, more than 64")
    return values


def rename_keys(table: Mapping[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """Return a table with its aliases replaced; refuse two names of the same key."""
    renamed: dict[str, Any] = {}
    for key, value in table.items():
        name = rename(key)
        if name in renamed:
            raise SteradError(
                f"{key!r} is another name of {name}, which is given already: keep one"
            )
        renamed[name] = value
    return renamed


def resolve_fields(table: Mapping[str, Any], cls: type[Any], owner: str) -> dict[str, Any]:
    """Return a table with the main names of the fields of a dataclass; refuse unknown ones.

    owner: what has these fields, for the error message.
    """
    fields = rename_keys(table, resolve_field_name)
    for name in fields:
        if name not in field_names(cls):
            raise unknown_field(name, field_names(cls), owner)
    return fields


def find_line(text: str, message: str) -> int | None:
    r"""Return the line of a TOML text that an error message is about; None if there is none.

    tomllib does not report the lines of values, so the text is searched for the name.

    >>> find_line("[fixed]\nmemry = 3", "unknown field 'memry' in the study")
    2
    >>> find_line("[fixed]\nseed = 1\n[axes]\nseed = []", "the axis 'seed' is []")
    4
    """
    subject = _SUBJECT.search(message)
    if subject is None:
        return None
    name = re.escape(_normalize(subject[2] or subject[3].rpartition(".")[2]))
    lines = [_normalize(line.partition("#")[0]) for line in text.splitlines()]
    # An axis with a wrong value is not a list, or an empty one; a fixed value may have its name.
    axis = rf"(?<![\w-]){name}[\"']?\s*=\s*(\[\s*\]|[^\s\[])"
    matches = _matching_lines(axis, lines)[-1:] if subject[1] else []
    key = rf"(?<![\w-]){name}[\"']?\s*[=.]"
    header = rf"^\s*\[[^=]*(?<![\w-]){name}(?![\w-])[^=]*\]\s*$"
    value = rf"[\"']{name}[\"']"
    matches += _matching_lines(f"{key}|{header}|{value}", lines)
    return 1 + matches[0] if matches else None


def _matching_lines(pattern: str, lines: list[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if re.search(pattern, line)]


def _normalize(text: str) -> str:
    return text.lower().replace("-", "_")
