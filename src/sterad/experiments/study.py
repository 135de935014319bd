"""Study: a grid of runs as a TOML file; running it runs what is missing."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sterad.errors import SteradError
from sterad.experiments.config import RunConfig, contents_digest
from sterad.experiments.toml_file import find_line, read_toml, rename_keys
from sterad.experiments.tuned import tuned_values
from sterad.methods import METHODS
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.validation import check_value, resolve_field_name, unknown_field

TABLES = ("fixed", "axes", "method")
GRID_KEYS = ("tuned", *TABLES)
MAX_RUNS = 100_000
"""Runs of a study before equal ones are removed; a product of a few axes could need all memory."""
STUDY_KEYS = ("title", "grid", *GRID_KEYS)


@dataclass(frozen=True)
class Study:
    """A title and the runs of one or more grids."""

    title: str
    configs: tuple[RunConfig, ...]

    @classmethod
    def from_toml(cls, path: str | Path) -> "Study":
        """Read a study file; fields have the names of the command line.

        The runs are the product of the lists in `[axes]`. Precedence: the file of tuned values that
        `tuned` names < `[fixed]` < `[method.NAME]`, for one method < `[axes]`. Each `[[grid]]` may
        have its own tables, merged over the common ones; the study is the union of its grids.
        """
        file, raw = Path(path), read_toml(path, "the study")
        try:
            return cls(check_value("title", raw.get("title", file.stem), str), _expand_study(raw))
        except SteradError as error:
            line = find_line(file.read_text(), str(error))
            where = f"in the study {str(path)!r}{f', line {line}' if line else ''}"
            raise SteradError(f"{where}: {error}") from error

    def missing(self, out: Path) -> tuple[RunConfig, ...]:
        """Return the runs without a record under `out`."""
        return tuple(c for c in self.configs if not RunDirectory(out, c.id).record.exists())

    def records(self, out: Path) -> tuple[list[RunRecord], list[str]]:
        """Return the records under `out` in the study's order, and errors of unreadable ones."""
        records: list[RunRecord] = []
        errors: list[str] = []
        for config in self.configs:
            try:
                record = RunDirectory(out, config.id).read_record()
                records += [] if record is None else [record]
            except SteradError as error:
                errors.append(str(error))
        return records, errors


def _expand_study(raw: Mapping[str, Any]) -> tuple[RunConfig, ...]:
    """Return the distinct runs of all grids, in the order of the file."""
    if not set(raw) - {"title", "tuned"}:
        raise SteradError("it has no runs: give values under [fixed] or lists under [axes]")
    _check_tables(raw, STUDY_KEYS, "the study")
    grids = raw.get("grid", [{}])
    if not isinstance(grids, list) or not all(isinstance(grid, Mapping) for grid in grids):
        raise SteradError(f"grid = {grids!r} is not a list of tables: head each one [[grid]]")
    for grid in grids:
        _check_tables(grid, GRID_KEYS, "a grid")
    common = _replace_aliases(raw)
    merged = [_merge_grid(common, _replace_aliases(grid)) for grid in grids]
    runs = sum(math.prod(map(len, grid["axes"].values())) for grid in merged)
    if runs > MAX_RUNS:
        raise SteradError(
            f"it has {runs:,} runs, more than {MAX_RUNS:,}: shorten the lists in [axes], or split "
            "the study into several files"
        )
    # The runs of a study share their files: each is read once.
    read_values, find_digest = cache(tuned_values), cache(contents_digest)
    configs = (_expand_grid(grid, read_values, find_digest) for grid in merged)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(configs)))


def _replace_aliases(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return all tables of a grid with the main names of fields and methods."""
    fixed, axes = (rename_keys(raw.get(key, {}), resolve_field_name) for key in ("fixed", "axes"))
    methods = rename_keys(raw.get("method", {}), METHODS.resolve)
    methods = {name: rename_keys(values, resolve_field_name) for name, values in methods.items()}
    return {**raw, "fixed": fixed, "axes": axes, "method": methods}


def _merge_grid(common: Mapping[str, Any], grid: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a grid over the common values; a field that it fixes is no longer an axis."""
    axes = common["axes"] | grid["axes"]
    no_axes = grid["fixed"].keys() - grid["axes"].keys()
    methods = common["method"] | {
        name: common["method"].get(name, {}) | values for name, values in grid["method"].items()
    }
    return {
        "tuned": grid.get("tuned", common.get("tuned")),
        "fixed": common["fixed"] | grid["fixed"],
        "axes": {name: values for name, values in axes.items() if name not in no_axes},
        "method": methods,
    }


def _expand_grid(
    grid: Mapping[str, Any],
    read_values: Callable[[str, str], dict[str, Any]],
    find_digest: Callable[[Any], str | None],
) -> Iterator[RunConfig]:
    """Yield a run for each point of the product of the axes."""
    fixed, axes = grid["fixed"], grid["axes"]
    for chosen in itertools.product(*axes.values()):
        point = dict(zip(axes, chosen, strict=True))
        name = check_value("method", (fixed | point).get("method", "agd-fd"), str)
        method = METHODS.resolve(name)
        tuned = {} if grid["tuned"] is None else read_values(grid["tuned"], method)
        values = tuned | fixed | grid["method"].get(method, {}) | point | {"method": method}
        yield RunConfig.from_values(values, find_digest)


def _check_tables(raw: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in raw:
        if key not in known:
            raise unknown_field(key, known, where)
    check_value("tuned", raw.get("tuned", ""), str)
    tables = {key: raw[key] for key in TABLES if key in raw}
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
