"""Help texts of commands, made from the fields of dataclasses and the docstrings below them."""

import ast
import dataclasses
import inspect
import itertools
import shutil
import textwrap
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from sterad.validation import field_names, field_types, union_members

NAME_COLUMNS = 26
"""Width of the column with the names of options."""
MAX_COLUMNS = 110


def print_help(
    prog: str,
    about: str,
    sections: Mapping[str, Sequence[type[Any]]],
    choices: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    hidden: frozenset[str] = frozenset(),
    show_advanced: bool = False,
) -> None:
    """Print what a command does and its options.

    sections: titles with the dataclasses whose fields are options; choices: options that choose a
    component, with their texts; values: shown in place of the defaults; hidden: fields that are not
    options of this command; show_advanced: whether fields marked as advanced are shown.
    """
    width = min(shutil.get_terminal_size().columns, MAX_COLUMNS)
    positionals = positional_fields(itertools.chain(*sections.values()))
    usage = " ".join([prog, *map(_usage_of, positionals), "[options]"])
    print(f"usage: {usage}\n\n{textwrap.fill(' '.join(about.split()), width)}")
    rows, advanced_count = list((choices or {}).items()), 0
    for title, classes in sections.items():
        for cls in classes:
            for field, name, text in _describe_fields(cls, values or {}, hidden):
                if "advanced" in field.metadata and not show_advanced:
                    advanced_count += 1
                else:
                    rows.append((name, text))
        if rows:
            print(f"\n{title}")
            for name, text in rows:
                print(_format_row(name, text, width))
        rows = []
    if advanced_count:
        print(f"\n--help-all shows {advanced_count} more.")


def positional_fields(classes: Iterable[type[Any]]) -> list[Any]:
    """Return the fields of dataclasses that are positional arguments."""
    fields = itertools.chain.from_iterable(map(dataclasses.fields, classes))
    return [field for field in fields if "positional" in field.metadata]


def _format_row(name: str, text: str, width: int) -> str:
    indent = " " * NAME_COLUMNS
    fits = len(name) + 4 <= NAME_COLUMNS
    start = f"  {name}".ljust(NAME_COLUMNS) if fits else f"  {name}\n{indent}"
    return start + textwrap.fill(text, width - NAME_COLUMNS).replace("\n", f"\n{indent}")


def _describe_fields(
    cls: type[Any], values: Mapping[str, Any], hidden: frozenset[str]
) -> Iterator[tuple[Any, str, str]]:
    """Yield each field with its name and its text in the help."""
    hints, docs = field_types(cls), field_docs(cls)
    for field in dataclasses.fields(cls):
        if field.name in hidden:
            continue
        name = field.metadata.get("positional") or _option_usage(field, hints[field.name])
        text = docs.get(field.name, "")
        if "(default:" not in text:
            text = f"{text} {_format_default(values.get(field.name, field.default))}"
        yield field, name, " ".join(text.split())


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
    hint = union_members(hint)[0]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return metavar(inner[0])
    if origin is Literal:
        return "|".join(map(str, inner))
    if origin is tuple:
        return f"{metavar(inner[0])} ..."
    return {bool: "", int: "INT", float: "FLOAT", Path: "PATH"}.get(hint, "TEXT")


def _format_default(value: Any) -> str:
    is_empty = value is None or value is dataclasses.MISSING or value in ("", ())
    return "" if is_empty or isinstance(value, bool) else f"(default: {value})"


def summary_of(component: Any) -> str:
    """Return the first line of the docstring of a class or function."""
    return (inspect.getdoc(component) or "").partition("\n")[0]


def field_docs(cls: type[Any]) -> dict[str, str]:
    """Return the docstrings below the fields of a dataclass and of its base classes."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        try:
            definition = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError, SyntaxError):  # a built-in class, or one without a file
            continue
        for statements in itertools.pairwise(getattr(definition, "body", [])):
            match statements:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    docs[name] = text
    return {name: text for name, text in docs.items() if name in field_names(cls)}
