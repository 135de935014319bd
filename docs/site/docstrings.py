"""Docstrings as Markdown, for pages of methods, and as reStructuredText, for the API reference.

Docstrings of sterad are plain text with `code` in backticks, numbered lists and doctests. What both
formats would take for markup is escaped.
"""

import itertools
import re
from typing import Any

_ARRAY_LIKE = re.compile(
    r"~?[\w.]*_Buffer \| .*?_NestedSequence\[complex \| bytes \| str\]", re.DOTALL
)
_ARRAY = re.compile(
    r"~?(?:numpy\.)?ndarray\[tuple\[~?[\w.]+, \.\.\.\], ~?[\w.]*dtype\[~?[\w.]+\]\]"
)
_ITEM = re.compile(r" *(?:\d+\.|-) ")
_ARGUMENT = re.compile(r"([a-z_]+(?:, [a-z_]+)*): (?=\S)")
_CODE = re.compile(r"(`[^`]+`)")
_ADDRESS = re.compile(r"(https?://[^\s,;)]+)")
_RST_MARKUP = re.compile(r"([*|\\]|_(?=\W|$))")
_MARKDOWN_MARKUP = re.compile(r"([*_$<\[\]\\])")


def to_markdown(text: str) -> str:
    r"""Return a docstring as Markdown; addresses become links.

    >>> print(to_markdown("Step on x*:\n  1. take `M_i`;\n  2. add\n     B."))
    Step on x\*:
    <BLANKLINE>
    1. take `M_i`;
    2. add
       B.
    <BLANKLINE>
    """
    return "\n".join(_escape_markdown(line) for line in _separate_lists(text.splitlines()))


def _escape_markdown(line: str) -> str:
    def escape(plain: str) -> str:
        parts = _ADDRESS.split(plain)
        parts[::2] = [_MARKDOWN_MARKUP.sub(r"\\\1", part) for part in parts[::2]]
        parts[1::2] = [f"<{address}>" for address in parts[1::2]]
        return "".join(parts)

    return _outside_code(line, escape)


def to_rst(lines: list[str]) -> list[str]:
    r"""Return a docstring as reStructuredText; doctests stay as they are.

    >>> to_rst(["Return |x| of `x`:", "", ">>> f(*x)", "1"])
    ['Return \\|x\\| of `x`:', '', '>>> f(*x)', '1', '']
    """
    converted: list[str] = []
    in_doctest = False
    for line in _separate_lists(_arguments_to_lists(lines)):
        in_doctest = bool(line.strip()) and (in_doctest or line.lstrip().startswith(">>>"))
        is_literal = in_doctest or line.startswith("    ")
        converted.append(line if is_literal else _escape_rst(line))
    return converted


def _escape_rst(line: str) -> str:
    return _outside_code(line, lambda plain: _RST_MARKUP.sub(r"\\\1", plain))


def _outside_code(line: str, escape: Any) -> str:
    parts = _CODE.split(line)
    parts[::2] = [escape(part) for part in parts[::2]]
    return "".join(parts)


def _arguments_to_lists(lines: list[str]) -> list[str]:
    """Make a list of a paragraph that explains arguments, with indented further lines."""
    converted: list[str] = []
    for is_text, group in itertools.groupby(lines, key=lambda line: bool(line.strip())):
        paragraph = list(group)
        has_indent = any(line.startswith("    ") for line in paragraph[1:])
        if is_text and has_indent and _ARGUMENT.match(paragraph[0]):
            paragraph = [
                _ARGUMENT.sub(_begin_item, line, count=1)
                if not line.startswith(" ")
                else f"  {line.strip()}"
                for line in paragraph
            ]
        converted += paragraph
    return converted


def _begin_item(names: re.Match[str]) -> str:
    return f"- `{names[1].replace(', ', '`, `')}`: "


def _separate_lists(lines: list[str]) -> list[str]:
    """Put empty lines around lists and doctests, and remove the indentation of lists."""
    separated: list[str] = []
    indent: int | None = None  # of the current list
    for line in lines:
        spaces = len(line) - len(line.lstrip())
        is_item = bool(_ITEM.match(line))
        if is_item and indent is None:
            separated, indent = [*separated, *([""] if separated else [])], spaces
        elif indent is not None and line.strip() and spaces <= indent and not is_item:
            separated, indent = [*separated, ""], None
        if line.startswith(">>>") and separated and separated[-1] and not _is_doctest(separated):
            separated.append("")
        separated.append(line[indent:] if indent else line)
    return [*separated, ""]


def _is_doctest(lines: list[str]) -> bool:
    """Return whether the last paragraph is a doctest."""
    start = max((i for i, line in enumerate(lines) if not line.strip()), default=-1) + 1
    return lines[start].startswith(">>>")


def convert_docstring(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Convert the docstring of an object of the API reference in place."""
    lines[:] = to_rst(lines)


def shorten_types(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str]:
    """Write the types of numpy as their names: `ArrayLike` and `ndarray`."""

    def shorten(text: str | None) -> Any:
        return text and _ARRAY.sub("~numpy.ndarray", _ARRAY_LIKE.sub("ArrayLike", text))

    return shorten(signature), shorten(returns)
