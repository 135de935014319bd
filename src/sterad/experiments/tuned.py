"""Tuned values: a TOML file a dataset, a table a method, each with the source of its values.

like = "cifar100"            # optional: start from another file
[er]
source = "where these values come from"
lr = 0.01
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sterad.errors import SteradError
from sterad.experiments.toml_file import read_toml
from sterad.methods import METHODS
from sterad.validation import build, check_value, field_names, unknown_field

PACKAGED = Path(__file__).parents[1] / "best"
"""Where an installed package keeps the files; a checkout keeps them under studies/best."""
CHECKOUT = Path(__file__).parents[3] / "studies" / "best"


@dataclass(frozen=True)
class Tuned:
    """Values of one method on one dataset, and where they come from."""

    source: str
    values: Mapping[str, Any]


def tuned_files() -> dict[str, Path]:
    """Return the files by name; those of the working folder hide ours of the same name."""
    folders = (PACKAGED, CHECKOUT, Path("studies") / "best")
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.toml"))}


def tuned_values(name: str, method: str) -> dict[str, Any]:
    """Return what a file, by its name or path, says of a method, checked against its fields."""
    found = read_tuned(name)
    resolved = METHODS.resolve(method)
    if resolved not in found:
        raise SteradError(
            f"{name!r} has no tuned values for {resolved!r}: known are {', '.join(found)}; "
            "add a table of its name, or leave tuned away"
        )
    return dict(found[resolved].values)


def read_tuned(name: str, asked: tuple[str, ...] = ()) -> dict[str, Tuned]:
    """Return all methods of a file and of the one that it is like; `asked` led here."""
    if name in asked:
        raise SteradError(f"tuned values are like each other in a ring: {' -> '.join(asked)}")
    file = _file(name)
    raw = read_toml(file, "the file of tuned values")
    like = raw.pop("like", None)
    found = {} if like is None else read_tuned(check_value("like", like, str), (*asked, name))
    for method, table in raw.items():
        if not isinstance(table, dict):
            raise SteradError(f"{method} = {table!r} in {str(file)!r} is not the table of a method")
        found[METHODS.resolve(method)] = _checked(method, table, file)
    return found


def _checked(method: str, table: dict[str, Any], file: Path) -> Tuned:
    source = table.pop("source", None)
    if not isinstance(source, str):
        raise SteradError(
            f"[{method}] in {str(file)!r} has no source: say where its values are from"
        )
    fields = METHODS[METHODS.resolve(method)].Config
    for name in table:
        if name not in field_names(fields):
            raise unknown_field(name, field_names(fields), f"[{method}] of {str(file)!r}")
    try:
        build(fields, table)
    except SteradError as error:
        raise SteradError(f"in [{method}] of {str(file)!r}: {error}") from error
    return Tuned(source, table)


def _file(name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    files = tuned_files()
    if name not in files:
        raise SteradError(
            f"no tuned values are called {name!r}: known are {', '.join(files)}; "
            "or give the path of a .toml file"
        )
    return files[name]
