"""Tuned values: a TOML file per dataset with a table per method, each with its source.

like = "cifar100"            # optional: start from another file
[er]
source = "where these values come from"
lr = 0.01
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from filelock import FileLock

from sterad.errors import SteradError
from sterad.experiments.study_files import STUDY_FOLDERS, toml_files
from sterad.experiments.toml_file import parse_toml, read_toml, resolve_fields
from sterad.files import reading, write_atomically
from sterad.methods import METHODS
from sterad.registry import canonical_name
from sterad.validation import build, check_value

TUNED_FOLDERS = tuple(folder / "best" for folder in STUDY_FOLDERS)
_HEADER = re.compile(r"\[\s*(?:\"([^\"]+)\"|'([^']+)'|([\w-]+))\s*\]\s*(#.*)?$")
"""The header of a table, with its name in double, single or no quotes."""


@dataclass(frozen=True)
class Tuned:
    """Values of one method on one dataset, and where they come from."""

    source: str
    values: Mapping[str, Any]


def tuned_files() -> dict[str, Path]:
    """Return the files by name; those of the working folder replace ours of the same name."""
    return toml_files(TUNED_FOLDERS)


def tuned_values(name: str, method: str) -> dict[str, Any]:
    """Return the values of a method in a file, which is given by its name or path."""
    tuned = read_tuned(name)
    resolved = METHODS.resolve(method)
    if resolved not in tuned:
        raise SteradError(
            f"{name!r} has no tuned values for {resolved!r}: known are {', '.join(tuned)}; "
            "add a table of its name, or leave tuned out"
        )
    return dict(tuned[resolved].values)


def read_tuned(name: str, parents: tuple[str, ...] = ()) -> dict[str, Tuned]:
    """Return the tuned values in a file and in the file that it is like, by method.

    parents: the files whose `like` led to this one.
    """
    if name in parents:
        raise SteradError(
            f"tuned values refer to each other in a circle: {' -> '.join((*parents, name))}; "
            "remove one `like`"
        )
    file = _find_file(name)
    tables = read_toml(file, "the file of tuned values")
    like = tables.pop("like", None)
    with reading(file, "correct it"):
        parent = check_value("like", like, str | None)
    tuned = {} if parent is None else read_tuned(parent, (*parents, name))
    for method, table in tables.items():
        if not isinstance(table, dict):
            raise SteradError(f"{method} = {table!r} in {str(file)!r} is not the table of a method")
        source = table.pop("source", None)
        if not isinstance(source, str):
            raise SteradError(
                f"[{method}] in {str(file)!r} has no source: give a text that says where its "
                "values come from"
            )
        try:
            fields = METHODS[method].Config
            values = resolve_fields(table, fields, "the method")
            build(fields, values)
        except SteradError as error:
            raise SteradError(f"in [{method}] of {str(file)!r}: {error}") from error
        tuned[METHODS.resolve(method)] = Tuned(source, values)
    return tuned


def _find_file(name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    files = tuned_files()
    if name not in files:
        raise SteradError(
            f"unknown tuned values {name!r}: known are {', '.join(files)}; or give the path of a "
            ".toml file"
        )
    return files[name]


def write_tuned(file: Path, method: str, tuned: Tuned) -> str | None:
    """Write the table of a method into a file, and leave the rest of the file as it is.

    Return the source of the values that it replaces.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Two searches that end at the same time must keep both tables.
        with FileLock(file.with_name(f".{file.name}.lock")):
            before = file.read_text() if file.exists() else ""
            table = {"source": tuned.source, **tuned.values}
            write_atomically(file, replace_table(before, method, table))
    except OSError as error:
        raise SteradError(
            f"cannot write the tuned values {str(file)!r}: {error.strerror}. The search itself is "
            "kept: choose another file with --save-tuned, and run the same command again"
        ) from error
    except SteradError:
        raise
    except Exception as error:  # tomllib raises more than TOMLDecodeError
        raise SteradError(
            f"the tuned values {str(file)!r} are not TOML ({error}) and are left unchanged: fix "
            "the file, or choose another with --save-tuned, and run the same command again"
        ) from error
    for name, replaced in parse_toml(before).items():
        if _is_name_of(name, method):
            return str(replaced.get("source"))
    return None


def replace_table(text: str, method: str, table: Mapping[str, Any]) -> str:
    r"""Return TOML with the table of a method replaced or appended; the rest is unchanged.

    >>> replace_table("[er]\nlr = 1\n# next\n[scr]\nlr = 2\n", "er", {"lr": 0.5})
    '[er]\nlr = 0.5\n# next\n[scr]\nlr = 2\n'
    """
    lines = text.splitlines(keepends=True)
    begin, end = _find_table(lines, method)
    head = "".join(lines[:begin])
    if begin == len(lines) and head:
        head = head.rstrip("\n") + "\n\n"
    body = "".join(
        f"{name} = {format_toml(value)}\n" for name, value in table.items() if value is not None
    )
    replaced = f"{head}[{method}]\n{body}{''.join(lines[end:])}"
    # Headers are found by a pattern, which inline tables and multi-line strings can mislead.
    if _other_tables(replaced, method) != _other_tables(text, method):
        raise SteradError(
            f"the table [{method}] cannot be replaced without changing others: write it as a "
            "header and a line for each value, or choose another file with --save-tuned"
        )
    return replaced


def _find_table(lines: list[str], method: str) -> tuple[int, int]:
    """Return the first and the end line of a table; comments before a header are not in it."""
    headers = [number for number, line in enumerate(lines) if line.lstrip().startswith("[")]
    for begin, end in pairwise([*headers, len(lines)]):
        header = _HEADER.match(lines[begin].strip())
        if header and _is_name_of(header[1] or header[2] or header[3], method):
            while end > begin + 1 and lines[end - 1].strip()[:1] in ("", "#"):
                end -= 1
            return begin, end
    return len(lines), len(lines)


def _is_name_of(name: str, method: str) -> bool:
    return canonical_name(name) == method or (name in METHODS and METHODS.resolve(name) == method)


def _other_tables(text: str, method: str) -> dict[str, Any]:
    tables = parse_toml(text)
    return {name: table for name, table in tables.items() if not _is_name_of(name, method)}


def format_toml(value: Any) -> str:
    """Return a number, text, boolean or list as TOML.

    >>> format_toml(1e-05), format_toml("a"), format_toml(True), format_toml((1, 2))
    ('1e-05', '"a"', 'true', '[1, 2]')
    """
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(format_toml, value))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
