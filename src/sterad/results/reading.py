"""All records under a folder; one that is damaged is named and left out, never guessed at."""

import math
from collections.abc import Sequence
from pathlib import Path

from sterad.errors import SteradError
from sterad.results.record import METRICS, RunRecord

_ALWAYS = ("final_average_accuracy", "anytime_accuracy")


def read_records(out: Path) -> tuple[list[RunRecord], list[str]]:
    """Read all records: by id, and a sentence for each that was left out.

    `out` has a directory a run, or a folder a study that has these; a run of two studies is one.
    """
    if not out.is_dir():
        raise SteradError(
            f"{str(out)!r} is not a folder of runs: `sterad train agd-fd --out {out}` makes one"
        )
    records: dict[str, RunRecord] = {}
    studies: dict[str, Path] = {}
    left_out: list[str] = []
    for path in sorted([*out.glob("*/record.json"), *out.glob("*/*/record.json")]):
        source, study = path.relative_to(out).as_posix(), path.parent.parent
        try:
            record = read_record(path, source)
        except SteradError as error:
            left_out.append(str(error))
            continue
        if studies.setdefault(record.id, study) != study:
            continue
        if record.id in records:
            left_out.append(f"{source} repeats the run {record.id}: delete one of the two")
        else:
            records[record.id] = record
    return sorted(records.values(), key=lambda record: record.id), left_out


def left_out_in_words(records: Sequence[RunRecord], left_out: Sequence[str]) -> list[str]:
    """Return the sentence for each record that was left out, and one that counts them."""
    every = len(records) + len(left_out)
    count = f"left out: {len(left_out)} of {every} records; their files stay as they are"
    return [*left_out, count] if left_out else []


def read_record(path: Path, source: str) -> RunRecord:
    """Read one record whose every part fits the others, or say what is wrong with it."""
    try:
        record = RunRecord.from_json(path.read_text(encoding="utf-8"), source)
        flaw = _flaw(record)
    except SteradError:
        raise
    except OSError as error:
        raise SteradError(f"{source} cannot be read ({error.strerror}): check the disk") from error
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        flaw = f"{type(error).__name__}: {error}"
    if flaw:
        raise SteradError(f"{source} is damaged ({flaw}): delete it and run again")
    return record


def _flaw(record: RunRecord) -> str | None:
    """Say what in a record contradicts the rest of it, so that no table or figure trips over it."""
    classes, columns = len(record.stream.class_names), len(record.evaluations)
    named = {c for task in record.stream.tasks for c in task}
    if record.sphere is not None:
        named |= {*record.sphere.classes, *(c for f in record.sphere.frames for c in f.labels)}
    rows = [*record.accuracy_matrix, *(moment.cells for moment in record.moments)]
    if not record.moments:
        return "it has no moments"
    if any(len(row) != columns for row in rows):
        return f"a row of accuracies has not the {columns} columns of its evaluations"
    if any(len(row) != classes for row in record.stream.proportions):
        return f"a stretch of the stream has not the {classes} columns of its classes"
    if any(len(moment.memory) > classes for moment in record.moments) or not (
        named <= set(range(classes))
    ):
        return f"it speaks of classes beyond its {classes}"
    if record.confusion and {len(record.confusion), *map(len, record.confusion)} != {classes}:
        return f"its confusion has not the {classes} rows and columns of its classes"
    return _unfit_number(record, [cell for row in rows for cell in row])


def _unfit_number(record: RunRecord, cells: list[float | None]) -> str | None:
    for name in METRICS:
        value = getattr(record, name)
        if not _fit(value) or (value is None and name in _ALWAYS):
            return f"{name} is {value!r}"
    always = [record.seconds, record.images_per_second, record.peak_memory_bytes]
    always += [moment.accuracy for moment in record.moments]
    # Hundreds of losses and thousands of counts: a sum is finite where all of them are.
    always += [sum(map(sum, record.losses)), sum(map(sum, record.confusion))]
    if None in always or not all(_fit(value) for value in (*always, *cells)):
        return "a cost or an accuracy is not a finite number"
    return None


def _fit(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and math.isfinite(value))
