"""Help texts of commands, made from the fields of dataclasses and the docstrings below them."""

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

NAME_COLUMNS = 26
"""Width of the column with the names of options."""
MAX_COLUMNS = 110


def print_help(
    prog: str,
    about: str,
    sections: Mapping[str, Sequence[type[Any]]],
    names: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    hidden: frozenset[str] = frozenset(),
    show_advanced: bool = False,
) -> None:
    """Print what a command does and its options.

    sections: titles with the dataclasses whose fields are options; names: options that choose a
    component, with their texts; values: shown in place of the defaults; hidden: fields that are not
    options of this command; show_advanced: whether fields marked as advanced are shown.
    """
    width = min(shutil.get_terminal_size().columns, MAX_COLUMNS)
    positionals = [
        field
        for classes in sections.values()
        for cls in classes
        for field in dataclasses.fields(cls)
        if "positional" in field.metadata
    ]
    usage = " ".join([prog, *map(_usage_of, positionals), "[options]"])
    print(f"usage: {usage}\n\n{textwrap.fill(' '.join(about.split()), width)}")
    hidden_count, choices = 0, [_Row(name, text, False) for name, text in (names or {}).items()]
    for title, classes in sections.items():
        rows = choices + [row for cls in classes for row in _rows(cls, values or {}, hidden)]
        choices = []
        shown = [row for row in rows if show_advanced or not row.is_advanced]
        hidden_count += len(rows) - len(shown)
        if shown:
            print(f"\n{title}")
            for row in shown:
                print(row.format(width))
    if hidden_count:
        print(f"\n--help-all shows {hidden_count} more.")


@dataclasses.dataclass(frozen=True)
class _Row:
    name: str
    about: str
    is_advanced: bool

    def format(self, width: int) -> str:
        indent = " " * NAME_COLUMNS
        lines = textwrap.wrap(self.about, width - NAME_COLUMNS) or [""]
        if len(self.name) + 4 > NAME_COLUMNS:
            return "\n".join([f"  {self.name}", *(indent + line for line in lines)])
        first, *rest = lines
        name = f"  {self.name:{NAME_COLUMNS - 2}}"
        return "\n".join([name + first, *(indent + line for line in rest)])


def _rows(cls: type[Any], values: Mapping[str, Any], hidden: frozenset[str]) -> list[_Row]:
    hints, docs = field_types(cls), field_docs(cls)
    rows = []
    for field in dataclasses.fields(cls):
        if field.name in hidden:
            continue
        name = field.metadata.get("positional") or _option_usage(field, hints[field.name])
        text = docs.get(field.name, "")
        if "(default:" not in text:
            text = f"{text} {_format_default(values.get(field.name, field.default))}"
        rows.append(_Row(name, " ".join(text.split()), "advanced" in field.metadata))
    return rows


def _usage_of(positional: Any) -> str:
    name: str = positional.metadata["positional"]
    return name if positional.default is dataclasses.MISSING else f"[{name}]"


def option_name(name: str) -> str:
    """Return the option of a field.

    >>> option_name("memory_batch")
    '--memory-batch'
    """
    return f"--{name.replace('_', '-')}"


def _option_usage(field: Any, hint: Any) -> str:
    option, value = option_name(field.name), metavar(hint)
    negated = f"--no-{option[2:]}"
    if value:
        return f"{option} {value}"
    if field.default is None:
        return f"{option}, {negated}"
    return negated if field.default is True else option


def metavar(hint: Any) -> str:
    """Return the placeholder for the value of an option; nothing for a flag.

    >>> metavar(int | None), metavar(Literal["adam", "sgd"]), metavar(tuple[int, ...])
    ('INT', 'adam|sgd', 'INT ...')
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return metavar(inner[0])
    if origin in (typing.Union, types.UnionType):
        return metavar(next(t for t in inner if t is not type(None)))
    if origin is Literal:
        return "|".join(map(str, inner))
    if origin is tuple:
        return f"{metavar(inner[0])} ..."
    return {bool: "", int: "INT", float: "FLOAT", Path: "PATH"}.get(hint, "TEXT")


def _format_default(value: Any) -> str:
    is_empty = value is None or value is dataclasses.MISSING or value in ("", ())
    return "" if is_empty or isinstance(value, bool) else f"(default: {value})"


def field_docs(cls: type[Any]) -> dict[str, str]:
    """Return the docstrings below the fields of a dataclass and of its base classes."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError, SyntaxError):  # a built-in class, or one without a file
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for before, after in itertools.pairwise(body):
            if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
                text = _docstring(after)
                if text:
                    docs[before.target.id] = text
    return {name: text for name, text in docs.items() if name in field_names(cls)}


def _docstring(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value if isinstance(node.value.value, str) else ""
    return ""
