"""Help texts: the fields of dataclasses in named groups, with what they take and their defaults."""

import ast
import dataclasses
import inspect
import itertools
import shutil
import textwrap
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from sterad.validation import field_names, field_types

INDENT = 26
"""Columns of the names of options."""


def print_help(
    prog: str,
    about: str,
    sections: Mapping[str, Sequence[type[Any]]],
    names: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    hidden: frozenset[str] = frozenset(),
    folded: bool = True,
) -> None:
    """Print what a command does and takes.

    sections: titles with the dataclasses whose fields are their options; names: options that choose
    a component, with their texts; values: those that stand in the place of defaults; hidden: fields
    that are no options of this command; folded: whether fields marked as advanced are left out.
    """
    width = min(shutil.get_terminal_size().columns, 110)
    places = [one for classes in sections.values() for cls in classes for one in _places(cls)]
    usage = " ".join([prog, *(_bracketed(one) for one in places), "[options]"])
    print(f"usage: {usage}\n\n{textwrap.fill(' '.join(about.split()), width)}")
    left_out, choices = 0, [_Row(name, text, False) for name, text in (names or {}).items()]
    for title, classes in sections.items():
        rows = choices + [row for cls in classes for row in _rows(cls, values or {}, hidden)]
        choices = []
        shown = [row for row in rows if not (folded and row.advanced)]
        left_out += len(rows) - len(shown)
        if shown:
            print(f"\n{title}")
            for row in shown:
                print(row.text(width))
    if left_out:
        print(f"\n--help-all shows {left_out} more.")


@dataclasses.dataclass(frozen=True)
class _Row:
    name: str
    about: str
    advanced: bool

    def text(self, width: int) -> str:
        space = " " * INDENT
        body = textwrap.wrap(self.about, width - INDENT) or [""]
        if len(self.name) + 4 > INDENT:
            return "\n".join([f"  {self.name}", *(space + line for line in body)])
        first, *rest = body
        return "\n".join([f"  {self.name:{INDENT - 2}}{first}", *(space + line for line in rest)])


def _rows(cls: type[Any], values: Mapping[str, Any], hidden: frozenset[str]) -> list[_Row]:
    hints, about = field_types(cls), field_docs(cls)
    rows = []
    for one in dataclasses.fields(cls):
        if one.name in hidden:
            continue
        name = one.metadata.get("positional") or _spelt(one.name, hints[one.name], one.default)
        default = values.get(one.name, one.default)
        text = about.get(one.name, "")
        said = " ".join([text, *([] if "(default:" in text else _default(default))])
        rows.append(_Row(name, " ".join(said.split()), "advanced" in one.metadata))
    return rows


def _places(cls: type[Any]) -> list[Any]:
    return [one for one in dataclasses.fields(cls) if "positional" in one.metadata]


def _bracketed(one: Any) -> str:
    name: str = one.metadata["positional"]
    return name if one.default is dataclasses.MISSING else f"[{name}]"


def _spelt(name: str, hint: Any, default: Any) -> str:
    dashed = name.replace("_", "-")
    shown = metavar(hint)
    if shown:
        return f"--{dashed} {shown}"
    if default is None:
        return f"--{dashed}, --no-{dashed}"
    return f"--no-{dashed}" if default is True else f"--{dashed}"


def metavar(hint: Any) -> str:
    """Return what stands for the value of an option in help; nothing for a switch.

    >>> metavar(int | None), metavar(Literal["adam", "sgd"]), metavar(tuple[int, ...])
    ('INT', 'adam|sgd', 'INT ...')
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return metavar(inner[0])
    if origin in (typing.Union, types.UnionType):
        return metavar(next(one for one in inner if one is not type(None)))
    if origin is Literal:
        return "|".join(map(str, inner))
    if origin is tuple:
        return f"{metavar(inner[0])} ..."
    return {bool: "", int: "INT", float: "FLOAT", Path: "PATH"}.get(hint, "TEXT")


def _default(value: Any) -> list[str]:
    silent = value is None or value is dataclasses.MISSING or value in ("", ())
    return [] if silent or isinstance(value, bool) else [f"(default: {value})"]


def field_docs(cls: type[Any]) -> dict[str, str]:
    """Return the docstrings below the fields of a dataclass and of those that it extends."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
        except (OSError, TypeError, SyntaxError):  # built in, or made without a file
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for before, after in itertools.pairwise(body):
            if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
                text = _string(after)
                if text:
                    found[before.target.id] = text
    return {name: text for name, text in found.items() if name in field_names(cls)}


def _string(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value if isinstance(node.value.value, str) else ""
    return ""
