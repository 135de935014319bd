"""Which settings differ between runs, and the table that follows: methods down, settings across."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sterad.results.record import RunRecord

Settings = dict[str, Any]
_ABSENT = object()
_FIRST = ("dataset.", "stream.", "memory")


@dataclass(frozen=True)
class Label:
    """The name of a row or column: one part per setting that tells it from the others."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All parts in one line."""
        return ", ".join(self.parts)


@dataclass(frozen=True)
class Layout:
    """Records laid out as a table; those of one cell differ in nothing but the seed."""

    rows: tuple[Label, ...]
    """Methods, with those of their fields that vary."""
    columns: tuple[Label, ...]
    """The other settings that vary; the data set and the stream where none does."""
    cells: Mapping[tuple[int, int], tuple[RunRecord, ...]]
    """(row, column) to records by rising seed; a pair that was not run is absent."""
    common: tuple[str, ...]
    """What is the same in all runs and switched on, the method aside."""

    def cell(self, row: int, column: int) -> tuple[RunRecord, ...]:
        """Return the records of a cell, none where nothing was run."""
        return self.cells.get((row, column), ())

    def groups(self) -> Iterator[tuple[Label, Label, tuple[RunRecord, ...]]]:
        """Go through the cells that hold records, column by column."""
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
            flat[f"{prefix}{name}"] = _frozen(value)
    return flat


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def varying(runs: Sequence[Settings]) -> tuple[str, ...]:
    """Return the paths that differ between runs which could share a value, the seed aside.

    A field of a named thing is compared only among runs of that name: that blurry streams have a
    scale and clear ones have none is no difference beyond the name.

    >>> varying([{"stream.name": "clear"}, {"stream.name": "blurry", "stream.scale": 150}])
    ('stream.name',)
    """
    paths = dict.fromkeys(path for run in runs for path in run if path != "seed")
    return tuple(path for path in paths if not _settled(path, runs, _names_around(path)))


def _names_around(path: str) -> tuple[str, ...]:
    parts = path.split(".")[:-1]
    names = tuple(".".join([*parts[: depth + 1], "name"]) for depth in range(len(parts)))
    return tuple(name for name in names if name != path)


def _settled(path: str, runs: Sequence[Settings], within: tuple[str, ...]) -> bool:
    """Say whether runs that agree on `within` agree on `path`."""
    known: dict[tuple[Any, ...], Any] = {}
    for run in runs:
        value = run.get(path, _ABSENT)
        if known.setdefault(tuple(run.get(name) for name in within), value) != value:
            return False
    return True


def lay_out(records: Iterable[RunRecord]) -> Layout:
    """Group records over seeds and lay the groups out by method and by what else varies.

    A setting that follows from the method alone (a memory that only one of them has) stands in the
    row, any other in the column.
    """
    known = [(record, flatten(record.config)) for record in records]
    runs = [run for _, run in known]
    down, across = _axes(runs)
    rows: dict[tuple[Any, ...], Label] = {}
    columns: dict[tuple[Any, ...], Label] = {}
    cells: dict[tuple[Any, Any], list[RunRecord]] = {}
    for record, run in known:
        row, column = _key(record, run, down), _key(record, run, across)
        rows[row], columns[column] = _label(run, down), _label(run, across)
        cells.setdefault((row, column), []).append(record)
    row_order, column_order = sorted(rows), sorted(columns)
    return Layout(
        rows=tuple(rows[key] for key in row_order),
        columns=tuple(columns[key] for key in column_order),
        cells={
            (row_order.index(row), column_order.index(column)): tuple(sorted(found, key=_by_seed))
            for (row, column), found in cells.items()
        },
        common=_common(runs),
    )


def _axes(runs: Sequence[Settings]) -> tuple[list[str], list[str]]:
    """Return the paths that tell rows apart and those that tell columns apart."""
    paths = [path for path in varying(runs) if path != "method.name"]
    own = [path for path in paths if path.startswith("method.")]
    rest = [path for path in paths if path not in own]
    follows = [
        path
        for path in rest
        if not path.startswith(("dataset.", "stream.")) and _settled(path, runs, ("method.name",))
    ]
    across = [path for path in rest if path not in follows] or ["dataset.name", "stream.name"]
    return ["method.name", *own, *follows], sorted(across, key=_prominence)


def _prominence(path: str) -> int:
    return next((rank for rank, start in enumerate(_FIRST) if path.startswith(start)), len(_FIRST))


def _key(record: RunRecord, run: Settings, paths: Sequence[str]) -> tuple[Any, ...]:
    # Streams that announce their boundaries come first: clear stands left of blurry.
    return tuple(
        (path == "stream.name" and not record.stream.announced, *_rank(run.get(path, _ABSENT)))
        for path in paths
    )


def _rank(value: Any) -> tuple[int, float, str]:
    """Order values of any kind: absent, none, numbers by size, then all else by its spelling."""
    if value is _ABSENT:
        return (0, 0.0, "")
    if value is None:
        return (1, 0.0, "")
    if isinstance(value, int | float):
        return (2, float(value), str(value))
    return (3, 0.0, str(value))


def _by_seed(record: RunRecord) -> tuple[tuple[int, float, str], str]:
    return _rank(record.config.get("seed")), record.id


def _label(run: Settings, paths: Sequence[str]) -> Label:
    return Label(tuple(words(path, run[path]) for path in paths if path in run) or ("all runs",))


def words(path: str, value: Any) -> str:
    """Say a setting in words.

    >>> words("dataset.name", "digits"), words("method.norm_all", True), words("memory", None)
    ('digits', 'norm all yes', 'memory none')
    """
    field = path.rpartition(".")[2]
    return spell(value) if field == "name" else f"{field.replace('_', ' ')} {spell(value)}"


def spell(value: Any) -> str:
    """Write a value as people do.

    >>> spell(True), spell(None), spell((1, 2)), spell(0.14)
    ('yes', 'none', '1 2', '0.14')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(spell(item) for item in value) or "none"
    return "none" if value is None else str(value)


def _common(runs: Sequence[Settings]) -> tuple[str, ...]:
    if not runs:
        return ()
    shared = [
        path
        for path, value in runs[0].items()
        if path != "seed"
        and value not in (None, False)
        and all(run.get(path, _ABSENT) == value for run in runs)
    ]
    others = [path for path in shared if not path.startswith("method.")]
    return tuple(words(path, runs[0][path]) for path in sorted(others, key=_prominence))
