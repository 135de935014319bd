"""RunRecord: the results of a run as plain numbers, readable without torch."""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sterad.errors import SteradError

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
    schema: int = field(default=SCHEMA)

    @property
    def images_per_batch(self) -> float:
        """Images trained on per stream batch, including those of consolidations."""
        return self.images_per_step + self.consolidation_images / max(1, self.stream.steps)

    def metrics(self) -> dict[str, Any]:
        """Return the results that are bit-identical for equal config and execution."""
        fields = ("accuracy_matrix", "moments", "stream", "sphere", "evaluations", "confusion")
        return {name: getattr(self, name) for name in (*METRICS, *fields, "losses")}

    def to_json(self) -> str:
        """Return the text of `record.json`, one row of numbers per line; floats are exact."""
        try:
            text = json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False)
        except ValueError as error:
            raise SteradError(
                f"a result of {self.id} is not finite ({error}): the method has diverged; try a "
                "smaller lr"
            ) from error
        return _NUMBER_LIST.sub(lambda row: "[" + " ".join(row[1].split()) + "]", text) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "the record") -> "RunRecord":
        """Read the text of `record.json`; `source` names it in error messages."""
        try:
            raw = json.loads(text)
            schema = raw["schema"]
        except (ValueError, TypeError, KeyError) as error:
            raise SteradError(
                f"{source} is damaged ({error!r}): delete it and run again"
            ) from error
        if schema != SCHEMA:
            raise SteradError(
                f"{source} has schema {schema!r} and this sterad reads {SCHEMA}: "
                "use the version that wrote it; the record is not changed"
            )
        if unknown := sorted(set(raw) - {field.name for field in dataclasses.fields(cls)}):
            raise SteradError(
                f"{source} has unknown fields ({', '.join(unknown)}), so a newer sterad wrote it: "
                "use that version; the record is not changed"
            )
        try:
            return _from_dict(cls, raw)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise SteradError(
                f"{source} is damaged, a field is missing or superfluous ({error}): "
                "delete it and run again"
            ) from error


def _to_tuples(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    # A list contains only lists or none; rows of numbers, most of a record, need no recursion.
    return tuple(map(_to_tuples, value)) if value and isinstance(value[0], list) else tuple(value)


def _from_dict(cls: type[RunRecord], raw: dict[str, Any]) -> RunRecord:
    values = {name: _to_tuples(value) for name, value in raw.items()}
    values["config"], values["execution"] = raw["config"], raw["execution"]
    values["provenance"] = raw["provenance"]
    values["stream"] = StreamFacts(**{k: _to_tuples(v) for k, v in raw["stream"].items()})
    values["moments"] = tuple(
        Moment(**{k: _to_tuples(v) for k, v in moment.items()}) for moment in raw["moments"]
    )
    if raw["sphere"] is not None:
        frames = tuple(
            SphereFrame(**{k: _to_tuples(v) for k, v in frame.items()})
            for frame in raw["sphere"]["frames"]
        )
        values["sphere"] = SpherePicture(_to_tuples(raw["sphere"]["classes"]), frames)
    return cls(**values)
