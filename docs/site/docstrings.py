"""Docstrings as Markdown, for pages of methods, and as reStructuredText, for the API reference.

Docstrings of sterad are plain text with `code` in backticks, numbered lists and doctests. What both
formats would take for markup is escaped.
"""

import re
from typing import Any

_ITEM = re.compile(r" *(?:\d+\.|-) ")
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
    for line in _separate_lists(lines):
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
