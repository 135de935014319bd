"""RunRecord: the results of a run as plain numbers, readable without torch."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sterad.errors import SteradError
from sterad.files import content_hash, join_short_lines, parse_json
from sterad.results.declared_types import find_wrong_field

SCHEMA = 1
"""Increases when a field is removed or changes its meaning. New fields have defaults and do not
increase it, so older records can still be read; unknown fields are rejected."""
METRICS = (
    "final_average_accuracy",
    "average_forgetting",
    "average_forgetting_released",
    "backward_transfer",
    "anytime_accuracy",
    "test_then_train_accuracy",
)


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
    """By label; empty if they are left out."""
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
class TrainingCost:
    """What training took, in numbers that do not depend on the machine.

    Evaluations, and encoding the memory for a classifier, are not counted.
    """

    pixels: float
    """Pixels passed through networks in training, those of all views and consolidations; a pass
    without gradients counts as 1/3, and a feature vector as one pixel."""
    forward_pixels: int
    """Pixels passed forward only, by a teacher for example, before they are divided by 3."""
    multiply_adds: float
    """Multiply-adds of convolutions and linear layers; a backward pass has twice those of a forward
    pass."""
    state_bytes: int
    """Bytes of all that the method keeps at the end: network, optimizer, teacher, memory."""


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
    cost: TrainingCost | None = None
    """What training took; None in records of versions that did not count it."""
    schema: int = SCHEMA

    @property
    def images_per_batch(self) -> float:
        """Images trained on per stream batch, including those of consolidations."""
        return self.images_per_step + self.consolidation_images / max(1, self.stream.steps)

    @property
    def pixels_per_batch(self) -> float:
        """Pixels through the network per stream batch, with consolidations; 0 if not counted."""
        return 0.0 if self.cost is None else self.cost.pixels / max(1, self.stream.steps)

    @property
    def multiply_adds_per_batch(self) -> float:
        """Multiply-adds per stream batch, with those of consolidations; 0 if not counted."""
        return 0.0 if self.cost is None else self.cost.multiply_adds / max(1, self.stream.steps)

    @property
    def state_bytes(self) -> int:
        """Bytes that the method keeps at the end; 0 if not counted."""
        return 0 if self.cost is None else self.cost.state_bytes

    def metrics(self) -> dict[str, Any]:
        """Return the results that are bit-identical for equal config and execution."""
        fields = ("accuracy_matrix", "moments", "stream", "sphere", "evaluations", "confusion")
        others = ("losses", "classifiers")
        return {name: getattr(self, name) for name in (*METRICS, *fields, *others)}

    def to_json(self) -> str:
        """Return the text of `record.json`, one row or moment per line; floats are exact."""
        values = dataclasses.asdict(self)
        try:
            text = json.dumps(values | {"sha256": content_hash(values)}, indent=1, allow_nan=False)
        except ValueError as error:
            raise SteradError(
                f"a result of {self.id} is not finite ({error}): the method has diverged; try a "
                "smaller lr"
            ) from error
        return join_short_lines(text) + "\n"

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
    cost = None if raw.get("cost") is None else _build(TrainingCost, raw["cost"])
    nested = {"stream": stream, "moments": moments, "sphere": sphere, "classifiers": classifiers}
    record: RunRecord = _build(RunRecord, raw | nested | {"cost": cost})
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
    if wrong := find_wrong_field(record):
        return f"{wrong} is {repr(getattr(record, wrong))[:60]}, which has a wrong type"
    labels, columns = {c for task in record.stream.tasks for c in task}, len(record.evaluations)
    # A compact record has no names.
    classes = len(record.stream.class_names) or max(labels, default=-1) + 1
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
