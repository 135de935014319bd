"""Lay runs out as a table by the settings that differ: methods in rows, others in columns."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sterad.results.record import RunRecord

Settings = dict[str, Any]
_ABSENT = object()
_FIRST_COLUMNS = ("dataset.", "stream.", "memory")


@dataclass(frozen=True)
class Label:
    """The name of a row or column: one part per setting that differs."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All parts in one line."""
        return ", ".join(self.parts)


@dataclass(frozen=True)
class Layout:
    """Records laid out as a table; those of one cell differ only in the seed."""

    rows: tuple[Label, ...]
    """Methods, with those of their fields that vary."""
    columns: tuple[Label, ...]
    """The other settings that vary; the dataset and the stream if none does."""
    cells: Mapping[tuple[int, int], tuple[RunRecord, ...]]
    """(row, column) to records, ordered by seed; cells without runs are absent."""
    common: tuple[str, ...]
    """Settings that are equal in all runs and switched on, without those of the method."""

    def cell(self, row: int, column: int) -> tuple[RunRecord, ...]:
        """Return the records of a cell, empty if it has no runs."""
        return self.cells.get((row, column), ())

    def groups(self) -> Iterator[tuple[Label, Label, tuple[RunRecord, ...]]]:
        """Yield row, column and records of the cells that have runs, column by column."""
        for column, row in sorted((column, row) for row, column in self.cells):
            yield self.rows[row], self.columns[column], self.cells[row, column]


def flatten(config: Mapping[str, Any], prefix: str = "") -> Settings:
    """Return a nested config as one level of dotted paths, its values hashable.

    >>> flatten({"method": {"name": "agd-fd", "variance": 2.0}, "memory": 200})
    {'method.name': 'agd-fd', 'method.variance': 2, 'memory': 200}
    """
    flat: Settings = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = _make_hashable(value)
    return flat


def _make_hashable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_make_hashable(item) for item in value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def find_varying(runs: Sequence[Settings]) -> tuple[str, ...]:
    """Return the paths whose values differ between runs, without the seed.

    A field of a component is compared only among runs with the same component: only blurry streams
    have a scale, so the scale does not differ between a clear and a blurry stream.

    >>> find_varying([{"stream.name": "clear"}, {"stream.name": "blurry", "stream.scale": 150}])
    ('stream.name',)
    """
    paths = dict.fromkeys(path for run in runs for path in run if path != "seed")
    return tuple(path for path in paths if not _is_determined(path, runs, _component_names(path)))


def _component_names(path: str) -> tuple[str, ...]:
    parts = path.split(".")[:-1]
    names = tuple(".".join([*parts[: depth + 1], "name"]) for depth in range(len(parts)))
    return tuple(name for name in names if name != path)


def _is_determined(path: str, runs: Sequence[Settings], by: tuple[str, ...]) -> bool:
    """Return whether runs with equal values of `by` have equal values of `path`."""
    known: dict[tuple[Any, ...], Any] = {}
    for run in runs:
        value = run.get(path, _ABSENT)
        if known.setdefault(tuple(run.get(name) for name in by), value) != value:
            return False
    return True


def lay_out(records: Iterable[RunRecord]) -> Layout:
    """Group records over seeds and lay the groups out by method and by the other settings.

    A setting that the method alone determines (a memory that only one method has) is part of the
    row label, unless most rows have the same value; all others are part of the column label.
    """
    flat = [(record, flatten(record.config)) for record in records]
    runs = [run for _, run in flat]
    row_paths, column_paths = _split_paths(runs)
    usual = _usual_values(runs, row_paths)
    rows: dict[tuple[Any, ...], Label] = {}
    columns: dict[tuple[Any, ...], Label] = {}
    cells: dict[tuple[Any, Any], list[RunRecord]] = {}
    for record, run in flat:
        row, column = _sort_key(record, run, row_paths), _sort_key(record, run, column_paths)
        own = [path for path in row_paths if usual.get(path, _ABSENT) != run.get(path)]
        rows[row], columns[column] = _label(run, own), _label(run, column_paths)
        cells.setdefault((row, column), []).append(record)
    row_order, column_order = sorted(rows), sorted(columns)
    return Layout(
        rows=tuple(rows[key] for key in row_order),
        columns=tuple(columns[key] for key in column_order),
        cells={
            (row_order.index(row), column_order.index(column)): tuple(sorted(found, key=_seed_key))
            for (row, column), found in cells.items()
        },
        common=_common_settings(runs),
    )


def _split_paths(runs: Sequence[Settings]) -> tuple[list[str], list[str]]:
    """Return the paths in the row labels and those in the column labels."""
    paths = [path for path in find_varying(runs) if path != "method.name"]
    rows = [path for path in paths if path.startswith("method.")]
    rows += [
        path
        for path in paths
        if not path.startswith(("method.", "dataset.", "stream."))
        and _is_determined(path, runs, ("method.name",))
    ]
    columns = [path for path in paths if path not in rows] or ["dataset.name", "stream.name"]
    return ["method.name", *rows], sorted(columns, key=_prominence)


def _usual_values(runs: Sequence[Settings], paths: Sequence[str]) -> Settings:
    """Return the values that more than half of the rows have, but for fields of the method."""
    rows = {tuple(run.get(path) for path in paths) for run in runs}
    usual: Settings = {}
    for place, path in enumerate(paths):
        for value, count in Counter(row[place] for row in rows).most_common(1):
            if 2 * count > len(rows) and not path.startswith("method."):
                usual[path] = value
    return usual


def _prominence(path: str) -> tuple[bool, ...]:
    return tuple(not path.startswith(start) for start in _FIRST_COLUMNS)


def _sort_key(record: RunRecord, run: Settings, paths: Sequence[str]) -> tuple[Any, ...]:
    # Streams that announce their boundaries come first: clear is left of blurry.
    return tuple(
        (path == "stream.name" and not record.stream.announced, *_value_key(run.get(path, _ABSENT)))
        for path in paths
    )


def _value_key(value: Any) -> tuple[int, float, str]:
    """Return a sort key for values of any type: absent, None, numbers, then texts."""
    if value is _ABSENT or value is None:
        return (int(value is None), 0.0, "")
    if isinstance(value, int | float):
        return (2, float(value), str(value))
    return (3, 0.0, str(value))


def _seed_key(record: RunRecord) -> tuple[tuple[int, float, str], str]:
    return _value_key(record.config.get("seed")), record.id


def _label(run: Settings, paths: Sequence[str]) -> Label:
    parts = tuple(format_setting(path, run[path]) for path in paths if path in run)
    return Label(parts or ("all runs",))


def format_setting(path: str, value: Any) -> str:
    """Return a setting as text.

    >>> format_setting("dataset.name", "digits"), format_setting("method.norm_all", True)
    ('digits', 'norm all yes')
    """
    field, text = path.rpartition(".")[2], format_value(value)
    return text if field == "name" else f"{field.replace('_', ' ')} {text}"


def format_value(value: Any) -> str:
    """Return a value as text.

    >>> format_value(True), format_value(None), format_value((1, 2))
    ('yes', 'none', '1 2')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(format_value(item) for item in value) or "none"
    return "none" if value is None else str(value)


def _common_settings(runs: Sequence[Settings]) -> tuple[str, ...]:
    first = runs[0] if runs else {}
    shared = [
        path
        for path, value in first.items()
        if not path.startswith("method.")
        and path != "seed"
        and value not in (None, False)
        and all(run.get(path, _ABSENT) == value for run in runs)
    ]
    return tuple(format_setting(path, first[path]) for path in sorted(shared, key=_prominence))
