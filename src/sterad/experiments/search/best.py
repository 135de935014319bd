"""The best values of a method, written into a file of tuned values beside those of others."""

import json
import re
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from filelock import FileLock

from sterad.atomic import write_atomically
from sterad.errors import SteradError
from sterad.methods import METHODS
from sterad.registry import canonical_name

HEADER = re.compile(r"\[\s*(?:\"([^\"]+)\"|'([^']+)'|([\w-]+))\s*\]\s*(#.*)?$")


def write_best(file: Path, method: str, source: str, values: Mapping[str, Any]) -> str | None:
    """Put a method's table into a file and leave the rest of it as it is.

    Return the source of the values that were there before.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Two searches that end at the same time must not overwrite each other's table.
        with FileLock(file.with_name(f".{file.name}.lock")):
            before = file.read_text() if file.exists() else ""
            write_atomically(file, with_table(before, method, {"source": source, **values}))
    except OSError as error:
        raise SteradError(
            f"cannot write the tuned values {str(file)!r}: {error.strerror}. The search itself is "
            "kept: choose another place with --save-tuned, and run the same command again"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SteradError(
            f"the tuned values {str(file)!r} are not TOML ({error}) and were left untouched: mend "
            "the file, or choose another with --save-tuned, and run the same command again"
        ) from error
    replaced = _table_of(tomllib.loads(before), method)
    return None if replaced is None else str(replaced.get("source"))


def with_table(text: str, method: str, table: Mapping[str, Any]) -> str:
    r"""Return TOML with a method's table replaced or appended; all else keeps its every byte.

    >>> with_table("[er]\nlr = 1\n# next\n[scr]\nlr = 2\n", "er", {"lr": 0.5})
    '[er]\nlr = 0.5\n# next\n[scr]\nlr = 2\n'
    """
    before = tomllib.loads(text)
    lines = text.splitlines(keepends=True)
    begin, end = _place(lines, method)
    head = "".join(lines[:begin])
    if begin == len(lines) and head:
        head = head.rstrip("\n") + "\n\n"
    body = "".join(
        f"{name} = {toml(value)}\n" for name, value in table.items() if value is not None
    )
    made = f"{head}[{method}]\n{body}{''.join(lines[end:])}"
    if _others(tomllib.loads(made), method) != _others(before, method):
        raise SteradError(
            f"the table [{method}] cannot be replaced without a change to others: write it as a "
            "header and a line for each value, or choose another file with --save-tuned"
        )
    return made


def _place(lines: list[str], method: str) -> tuple[int, int]:
    """Return where a method's table begins and ends; comments before a header belong to it."""
    headers = [at for at, line in enumerate(lines) if line.lstrip().startswith("[")]
    for at, following in pairwise([*headers, len(lines)]):
        found = HEADER.match(lines[at].strip())
        if found and _means(found[1] or found[2] or found[3], method):
            end = following
            while end > at + 1 and lines[end - 1].strip()[:1] in ("", "#"):
                end -= 1
            return at, end
    return len(lines), len(lines)


def _means(name: str, method: str) -> bool:
    return canonical_name(name) == method or (name in METHODS and METHODS.resolve(name) == method)


def _table_of(tables: Mapping[str, Any], method: str) -> dict[str, Any] | None:
    return next((table for name, table in tables.items() if _means(name, method)), None)


def _others(tables: Mapping[str, Any], method: str) -> dict[str, Any]:
    return {name: table for name, table in tables.items() if not _means(name, method)}


def toml(value: Any) -> str:
    """Spell a plain value as TOML does.

    >>> toml(1e-05), toml("a"), toml(True), toml((1, 2))
    ('1e-05', '"a"', 'true', '[1, 2]')
    """
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml, value))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
