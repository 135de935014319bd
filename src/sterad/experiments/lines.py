"""Lines of a TOML file, which tomllib does not tell: found again by a search of the text."""

import re

_SAID = re.compile(r"(the axis )?'([^']+)'|^([\w.-]+) (?:= |is |-?\d|[\"'\[])")


def line_of(text: str, message: str) -> int | None:
    r"""Return the line that a message about a TOML file speaks of; None where it names none.

    What it speaks of is the first name that it quotes, or the one that it begins with.

    >>> line_of("[fixed]\nmemry = 3", "unknown field 'memry' in the study")
    2
    >>> line_of("[fixed]\nseed = 1\n[axes]\nseed = []", "the axis 'seed' is []")
    4
    """
    said = _SAID.search(message)
    if said is None:
        return None
    name = _spelled(said[2] or said[3].rpartition(".")[2])
    lines = [_spelled(line.partition("#")[0]) for line in text.splitlines()]
    axis = re.compile(rf"(?<![\w-]){re.escape(name)}[\"']?\s*=\s*(\[\s*\]|[^\s\[])")
    places = _matching(axis, lines)[-1:] if said[1] else []
    key = rf"(?<![\w-]){re.escape(name)}[\"']?\s*[=.]"
    header = rf"^\s*\[[^=]*(?<![\w-]){re.escape(name)}(?![\w-])[^=]*\]\s*$"
    value = rf"[\"']{re.escape(name)}[\"']"
    places += _matching(re.compile(f"{key}|{header}|{value}"), lines)
    return 1 + places[0] if places else None


def _matching(pattern: re.Pattern[str], lines: list[str]) -> list[int]:
    return [at for at, line in enumerate(lines) if pattern.search(line)]


def _spelled(text: str) -> str:
    return text.lower().replace("-", "_")
