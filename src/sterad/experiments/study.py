"""Study: a grid of runs as a TOML file; running it means running what is missing."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sterad.errors import SteradError
from sterad.experiments.config import RunConfig, contents_digest
from sterad.experiments.lines import line_of
from sterad.experiments.toml_file import read_toml
from sterad.experiments.tuned import tuned_values
from sterad.methods import METHODS
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.validation import check_value, resolve_field_name, unknown_field

PARTS = ("fixed", "axes", "method")
GRID = ("tuned", *PARTS)
KEYS = ("title", "grid", *GRID)


@dataclass(frozen=True)
class Study:
    """Fixed values, axes whose product is taken, values of single methods, and unions of those."""

    title: str
    configs: tuple[RunConfig, ...]

    @classmethod
    def from_toml(cls, path: str | Path) -> "Study":
        """Read a study file.

        `tuned` names a file of tuned values a method; above them stand the values of `[fixed]` for
        all runs, above these `[method.NAME]` for one method alone, and above all the values of
        `[axes]`, a list each. Each `[[grid]]` holds its own of these, merged over the common ones;
        the study is the union of its grids. Names are those of the command line.
        """
        file, raw = Path(path), read_toml(path, "the study")
        try:
            return cls(check_value("title", raw.get("title", file.stem), str), _union(raw))
        except SteradError as error:
            line = line_of(file.read_text(), str(error))
            where = f"in the study {str(path)!r}{f', line {line}' if line else ''}"
            raise SteradError(f"{where}: {error}") from error

    def missing(self, out: Path) -> tuple[RunConfig, ...]:
        """Return the runs without a record under `out`."""
        return tuple(c for c in self.configs if not RunDirectory(out, c.id).record.exists())

    def records(self, out: Path) -> tuple[list[RunRecord], list[str]]:
        """Return the records under `out` in the study's order, and what is wrong with others."""
        records: list[RunRecord] = []
        left_out: list[str] = []
        for config in self.configs:
            try:
                found = RunDirectory(out, config.id).read_record()
                records += [] if found is None else [found]
            except SteradError as error:
                left_out.append(str(error))
        return records, left_out


def _union(raw: Mapping[str, Any]) -> tuple[RunConfig, ...]:
    """Return the runs of all grids, each once, in the order of the file."""
    if not set(raw) - {"title", "tuned"}:
        raise SteradError("it says nothing to run: give values under [fixed] or lists under [axes]")
    _check_tables(raw, KEYS, "the study")
    grids = raw.get("grid", [{}])
    if not isinstance(grids, list) or not all(isinstance(grid, Mapping) for grid in grids):
        raise SteradError(f"grid = {grids!r} is not a list of tables: head each one [[grid]]")
    for grid in grids:
        _check_tables(grid, GRID, "a grid")
    # The runs of a study share their files: each is read once.
    common, tuned, contents = _spelled_out(raw), cache(tuned_values), cache(contents_digest)
    merged = [_merged(common, _spelled_out(grid)) for grid in grids]
    products = (_product(one, tuned, contents) for one in merged)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(products)))


def _spelled_out(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a grid under our own names, so that one that is merged over it finds them."""
    fields = {
        part: _renamed(raw[part], resolve_field_name) for part in ("fixed", "axes") if part in raw
    }
    methods = _renamed(raw.get("method", {}), METHODS.resolve)
    own = {name: _renamed(values, resolve_field_name) for name, values in methods.items()}
    return {**raw, **fields, "method": own}


def _renamed(table: Mapping[str, Any], name_of: Callable[[str], str]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for name, value in table.items():
        if name_of(name) in named:
            raise SteradError(
                f"{name!r} is another name of {name_of(name)}, which is given already: keep one"
            )
        named[name_of(name)] = value
    return named


def _merged(common: Mapping[str, Any], grid: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the values of a grid over the common ones; what it fixes is no axis any more."""
    parts = {part: common.get(part, {}) | grid.get(part, {}) for part in PARTS}
    parts |= {key: given["tuned"] for given in (common, grid) for key in given if key == "tuned"}
    both = set(common.get("method", {})) & set(grid.get("method", {}))
    parts["method"] |= {name: common["method"][name] | grid["method"][name] for name in both}
    kept = set(grid.get("axes", {})) | set(parts["axes"]) - set(grid.get("fixed", {}))
    return parts | {"axes": {name: v for name, v in parts["axes"].items() if name in kept}}


def _product(
    parts: Mapping[str, Any],
    tuned_values: Callable[[str, str], dict[str, Any]],
    contents: Callable[[Any], str | None],
) -> Iterator[RunConfig]:
    fixed, axes = parts["fixed"], parts["axes"]
    own = parts["method"]
    for chosen in itertools.product(*axes.values()):
        point = dict(zip(axes, chosen, strict=True))
        method = METHODS.resolve(
            check_value("method", (fixed | point).get("method", "agd-fd"), str)
        )
        tuned = tuned_values(parts["tuned"], method) if "tuned" in parts else {}
        values = tuned | fixed | own.get(method, {}) | point | {"method": method}
        yield RunConfig.from_values(values, contents)


def _check_tables(raw: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in raw:
        if key not in known:
            raise unknown_field(key, known, where)
    check_value("tuned", raw.get("tuned", ""), str)
    tables = {key: raw[key] for key in PARTS if key in raw}
    if isinstance(raw.get("method"), Mapping):
        tables |= {f"method.{name}": values for name, values in raw["method"].items()}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise SteradError(
                f"{name} = {table!r} is not a table: values go under [fixed], [axes] or "
                "[method.NAME], and the method itself under [fixed] or [axes]"
            )
    for name, values in raw.get("axes", {}).items():
        if not isinstance(values, list) or not values:
            raise SteradError(
                f"the axis {name!r} is {values!r}: give a list with at least one value"
            )
