"""RunRecord: the results of a run as plain numbers, readable without torch."""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from sterad.errors import SteradError
from sterad.files import content_hash, parse_json

SCHEMA = 1
"""Increases when a field is removed or changes its meaning. New fields have defaults and do not
increase it, so older records can still be read; unknown fields are rejected."""
_NUMBER_LIST = re.compile(r"\[\n([-\d.e+,\snul]*)\]")  # numbers and nulls only
METRICS = (
    "final_average_accuracy",
    "average_forgetting",
    "average_forgetting_released",
    "backward_transfer",
    "anytime_accuracy",
    "test_then_train_accuracy",
)
_JSON_TYPES: dict[Any, set[type]] = {
    **{kind: {kind} for kind in (int, bool, str, type(None))},
    float: {int, float},
    float | None: {int, float, type(None)},
}
"""Types of values that each declared type accepts."""


@dataclass(frozen=True)
class Moment:
    """One evaluation during the stream."""

    step: int
    """Stream batches learned so far."""
    samples: int
    """Stream images learned so far."""
    boundary: bool
    """Whether the stream announced the end of a task here."""
    anytime: bool
    """Whether it counts for the anytime accuracy."""
    seen: int
    """Classes seen so far."""
    accuracy: float
    """Accuracy on the test images of all seen classes."""
    cells: tuple[float | None, ...]
    """Accuracy on the test images of each evaluation (task); None if none of its classes has been
    seen."""
    memory: tuple[int, ...]
    """Number of images in memory per class; empty for a method without memory."""


@dataclass(frozen=True)
class StreamFacts:
    """Description of the stream, so that the record can be read on its own."""

    name: str
    samples: int
    steps: int
    tasks: tuple[tuple[int, ...], ...]
    """Classes of each task, in the order of the stream."""
    announced: bool
    """Whether the ends of tasks were announced to the method."""
    class_names: tuple[str, ...]
    proportions: tuple[tuple[int, ...], ...]
    """Rows: equal parts of the stream; columns: classes; cells: number of images."""
    digest: str = ""
    """Hash of the order, batches, boundaries and transformations: equal for equal streams."""
    description: str = ""
    """The stream in one line."""


@dataclass(frozen=True)
class SphereFrame:
    """Features of test images of three classes, in the space of their three fixed directions."""

    step: int
    labels: tuple[int, ...]
    """Class of each point."""
    points: tuple[tuple[float, float, float], ...]
    """z restricted to the three directions and scaled to unit length."""


@dataclass(frozen=True)
class SpherePicture:
    """Features on the sphere at several steps, as in the paper's figure 1."""

    classes: tuple[int, int, int]
    """The classes whose directions are the axes; one from the first, a middle and the last task."""
    frames: tuple[SphereFrame, ...]


@dataclass(frozen=True)
class ClassifierResult:
    """Results of another classifier on the features of the same run."""

    name: str
    """The head, a classifier fitted to the memory, or `train:` and one that is fitted to all
    training images after the last batch."""
    final_average_accuracy: float
    moments: tuple[Moment, ...]
    """Its evaluations, without counts of the memory."""


@dataclass(frozen=True)
class RunRecord:
    """A finished run. Accuracies are fractions in [0, 1]; missing values are None, never NaN."""

    id: str
    config: Mapping[str, Any]
    stream: StreamFacts
    evaluations: tuple[str, ...]
    moments: tuple[Moment, ...]
    accuracy_matrix: tuple[tuple[float | None, ...], ...]
    """Rows: announced ends of tasks, or every moment if none is announced; columns: evaluations."""
    final_average_accuracy: float
    average_forgetting: float | None
    average_forgetting_released: float | None
    backward_transfer: float | None
    anytime_accuracy: float
    test_then_train_accuracy: float | None
    seconds: float
    images_per_second: float
    """Images passed through the network in training, counting all views, per second."""
    peak_memory_bytes: int
    execution: Mapping[str, Any]
    """Device, threads, memory format, precision, compile: not part of the id."""
    provenance: Mapping[str, Any]
    images_per_step: float = 0.0
    """Images passed through the network per stream batch, counting all views, without those of
    consolidations."""
    consolidation_images: int = 0
    """Images trained on in all consolidations; GDumb trains only there."""
    confusion: tuple[tuple[int, ...], ...] = ()
    """Confusion matrix at the end: counts by true class (row) and predicted class (column)."""
    losses: tuple[tuple[int, float, float], ...] = ()
    """Step, mean training loss of the classes of the current task, mean loss of those of earlier
    tasks; empty for a method without a loss per sample."""
    sphere: SpherePicture | None = None
    data_digest: str = ""
    """Hash of the images and labels; empty for a live feed."""
    classifiers: tuple[ClassifierResult, ...] = ()
    """Results of the classifiers in `also_evaluate`."""
    changes: tuple[str, ...] = ()
    """What the run depends on and has changed between an interruption and its continuation, which
    the user accepted: the result may differ from that of an uninterrupted run."""
    schema: int = SCHEMA

    @property
    def images_per_batch(self) -> float:
        """Images trained on per stream batch, including those of consolidations."""
        return self.images_per_step + self.consolidation_images / max(1, self.stream.steps)

    def metrics(self) -> dict[str, Any]:
        """Return the results that are bit-identical for equal config and execution."""
        fields = ("accuracy_matrix", "moments", "stream", "sphere", "evaluations", "confusion")
        others = ("losses", "classifiers")
        return {name: getattr(self, name) for name in (*METRICS, *fields, *others)}

    def to_json(self) -> str:
        """Return the text of `record.json`, one row of numbers per line; floats are exact."""
        values = dataclasses.asdict(self)
        try:
            text = json.dumps(values | {"sha256": content_hash(values)}, indent=1, allow_nan=False)
        except ValueError as error:
            raise SteradError(
                f"a result of {self.id} is not finite ({error}): the method has diverged; try a "
                "smaller lr"
            ) from error
        return _NUMBER_LIST.sub(lambda row: "[" + " ".join(row[1].split()) + "]", text) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "the record") -> "RunRecord":
        """Read and check the text of `record.json`; `source` names it in error messages."""
        try:
            raw = parse_json(text)
            _check_version(raw, source)
            if raw.pop("sha256") != content_hash(raw):
                raise ValueError("its content does not match its SHA-256")
            record = _from_dict(raw)
            problem = _find_problem(record)
        except SteradError:
            raise
        except KeyError as error:
            problem = f"the field {error} is missing"
        except Exception as error:  # JSON of any content can raise any exception
            problem = str(error)[:200] or type(error).__name__
        if problem:
            raise SteradError(f"{source} is damaged ({problem}): delete it and run again")
        return record


def _check_version(raw: dict[str, Any], source: str) -> None:
    if raw["schema"] != SCHEMA:
        raise SteradError(
            f"{source} has schema {raw['schema']!r} and this sterad reads {SCHEMA}: "
            "use the version that wrote it; the record is not changed"
        )
    known = {"sha256", *(field.name for field in dataclasses.fields(RunRecord))}
    if unknown := sorted(raw.keys() - known):
        raise SteradError(
            f"{source} has unknown fields ({', '.join(unknown)}), so a newer sterad wrote it: "
            "use that version; the record is not changed"
        )


def _from_dict(raw: dict[str, Any]) -> RunRecord:
    sphere = raw["sphere"]
    if sphere is not None:
        frames = tuple(_build(SphereFrame, frame) for frame in sphere["frames"])
        sphere = SpherePicture(_to_tuples(sphere["classes"]), frames)
    stream = _build(StreamFacts, raw["stream"])
    moments = _build_moments(raw["moments"])
    classifiers = tuple(
        ClassifierResult(**one | {"moments": _build_moments(one["moments"])})
        for one in raw.get("classifiers", ())
    )
    nested = {"stream": stream, "moments": moments, "sphere": sphere, "classifiers": classifiers}
    record: RunRecord = _build(RunRecord, raw | nested)
    return record


def _build_moments(raw: list[dict[str, Any]]) -> tuple[Moment, ...]:
    return tuple(_build(Moment, moment) for moment in raw)


def _build(cls: Any, raw: dict[str, Any]) -> Any:
    return cls(**{name: _to_tuples(value) for name, value in raw.items()})


def _to_tuples(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    # A list contains only lists or none; rows of numbers, most of a record, need no recursion.
    return tuple(map(_to_tuples, value)) if value and isinstance(value[0], list) else tuple(value)


def _find_problem(record: RunRecord) -> str | None:
    """Return the first inconsistency in a record that would break a table or figure."""
    if wrong := _find_wrong_field(record):
        return f"{wrong} is {repr(getattr(record, wrong))[:60]}, which has a wrong type"
    classes, columns = len(record.stream.class_names), len(record.evaluations)
    labels = {c for task in record.stream.tasks for c in task}
    if record.sphere is not None:
        labels |= {*record.sphere.classes, *(c for f in record.sphere.frames for c in f.labels)}
    others = [moment for one in record.classifiers for moment in one.moments]
    rows = [*record.accuracy_matrix, *(moment.cells for moment in (*record.moments, *others))]
    if not record.moments or not all(one.moments for one in record.classifiers):
        return "it has no moments"
    if any(len(row) != columns for row in rows):
        return f"a row of accuracies does not have {columns} columns, one per evaluation"
    if any(len(row) != classes for row in record.stream.proportions):
        return f"a row of stream proportions does not have {classes} columns, one per class"
    if not labels <= set(range(classes)) or any(len(m.memory) > classes for m in record.moments):
        return f"it has labels outside its {classes} classes"
    if record.confusion and {len(record.confusion), *map(len, record.confusion)} != {classes}:
        return f"its confusion matrix does not have {classes} rows and columns, one per class"
    return None


def _find_wrong_field(value: Any) -> str | None:
    """Return the first field of a dataclass that does not have the declared type."""
    cls: Any = type(value)
    hints = _type_hints(cls)
    return next((name for name in hints if not _has_type(getattr(value, name), hints[name])), None)


@cache
def _type_hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _has_type(value: Any, hint: Any) -> bool:
    inner = get_args(hint)
    if hint in _JSON_TYPES:
        return type(value) in _JSON_TYPES[hint]
    if get_origin(hint) is tuple:
        has_length = inner[-1] is ... or (type(value) is tuple and len(value) == len(inner))
        if type(value) is not tuple or not has_length:
            return False
        if inner[0] in _JSON_TYPES and inner[-1] in (..., inner[0]):
            return {*map(type, value)} <= _JSON_TYPES[inner[0]]  # rows of numbers
        return all(map(_has_type, value, inner[:1] * len(value) if inner[-1] is ... else inner))
    if get_origin(hint) is UnionType:
        return any(_has_type(value, one) for one in inner)
    if dataclasses.is_dataclass(hint):
        return type(value) is hint and _find_wrong_field(value) is None
    return isinstance(value, dict)
