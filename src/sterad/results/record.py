"""RunRecord: what came of a run, as plain numbers that need no torch to be read."""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sterad.errors import SteradError

SCHEMA = 1
"""Rises when a field changes its meaning or goes. A field that is added has a default and leaves it
as it is, so that older records still read; this sterad refuses fields that it does not know."""
_NUMBERS = re.compile(r"\[\n([-\d.e+,\snul]*)\]")  # a list of numbers and nulls alone
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
    """Whether this is one of the regular moments of the anytime accuracy."""
    seen: int
    """Classes seen so far."""
    accuracy: float
    """Share of right answers on the test images of all seen classes."""
    cells: tuple[float | None, ...]
    """Share of right answers on the test images of each evaluation (task); None where none of its
    classes has been seen."""
    memory: tuple[int, ...]
    """Images held in memory, per class; empty for a method without memory."""


@dataclass(frozen=True)
class StreamFacts:
    """What the stream was, for people who look at the record alone."""

    name: str
    samples: int
    steps: int
    tasks: tuple[tuple[int, ...], ...]
    """Classes of each task, in the order of the stream."""
    announced: bool
    """Whether the ends of tasks were announced to the method."""
    class_names: tuple[str, ...]
    proportions: tuple[tuple[int, ...], ...]
    """Rows: equal stretches of the stream; columns: classes; cells: images of the class."""
    digest: str = ""
    """Hash of the order, batches, ends and transformations: equal for equal streams."""
    description: str = ""
    """The stream in one line."""


@dataclass(frozen=True)
class SphereFrame:
    """Test representations of three classes in the space of their three fixed directions."""

    step: int
    labels: tuple[int, ...]
    """Class of each point."""
    points: tuple[tuple[float, float, float], ...]
    """z restricted to the three directions and scaled to unit length."""


@dataclass(frozen=True)
class SpherePicture:
    """The picture of the paper's first figure, from this run."""

    classes: tuple[int, int, int]
    """The classes whose directions are the axes; one from the first, a middle and the last task."""
    frames: tuple[SphereFrame, ...]


@dataclass(frozen=True)
class RunRecord:
    """A finished run. Accuracies are fractions in [0, 1]; what is absent is None, never NaN."""

    id: str
    config: Mapping[str, Any]
    stream: StreamFacts
    evaluations: tuple[str, ...]
    moments: tuple[Moment, ...]
    accuracy_matrix: tuple[tuple[float | None, ...], ...]
    """Rows: ends of tasks (every moment where none is announced); columns: evaluations."""
    final_average_accuracy: float
    average_forgetting: float | None
    average_forgetting_released: float | None
    backward_transfer: float | None
    anytime_accuracy: float
    test_then_train_accuracy: float | None
    seconds: float
    images_per_second: float
    """Images pushed through the network in training, all views counted, per second of training."""
    peak_memory_bytes: int
    execution: Mapping[str, Any]
    """Device, threads, memory format, precision, compile: not part of the id."""
    provenance: Mapping[str, Any]
    images_per_step: float = 0.0
    """Images pushed through the network per stream batch, all views counted; what is trained at
    consolidations is not."""
    consolidation_images: int = 0
    """Images trained on in all consolidations: GDumb learns nothing elsewhere."""
    confusion: tuple[tuple[int, ...], ...] = ()
    """At the end: test images of each class (down) that were answered with each class (across)."""
    losses: tuple[tuple[int, float, float], ...] = ()
    """Watched steps with the mean training loss of the classes of the task at hand and of those of
    earlier tasks; empty for a method without a loss a row."""
    sphere: SpherePicture | None = None
    data_digest: str = ""
    """Hash of the images and labels that the run was given; none for a feed."""
    schema: int = field(default=SCHEMA)

    @property
    def images_per_batch(self) -> float:
        """Images trained on for each stream batch, those of consolidations included."""
        return self.images_per_step + self.consolidation_images / max(1, self.stream.steps)

    def metrics(self) -> dict[str, Any]:
        """Return all that two runs of one config under one execution must share, bit for bit."""
        shared = ("accuracy_matrix", "moments", "stream", "sphere", "evaluations", "confusion")
        return {name: getattr(self, name) for name in (*METRICS, *shared, "losses")}

    def to_json(self) -> str:
        """Return the text of `record.json`, a row of numbers a line; floats read back equal."""
        try:
            text = json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False)
        except ValueError as error:
            raise SteradError(
                f"a result of {self.id} is not finite ({error}): the method has diverged; try a "
                "smaller lr"
            ) from error
        return _NUMBERS.sub(lambda row: "[" + " ".join(row[1].split()) + "]", text) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "the record") -> "RunRecord":
        """Read `record.json`, or say what is wrong with it; `source` names it in messages."""
        try:
            raw = json.loads(text)
            schema = raw["schema"]
        except (ValueError, TypeError, KeyError) as error:
            raise SteradError(
                f"{source} is damaged ({error!r}): delete it and run again to write it anew"
            ) from error
        if schema != SCHEMA:
            raise SteradError(
                f"{source} has schema {schema!r} and this sterad reads {SCHEMA}: "
                "use the sterad that wrote it; the record stays as it is"
            )
        if unknown := sorted(set(raw) - {one.name for one in dataclasses.fields(cls)}):
            raise SteradError(
                f"{source} has fields that this sterad does not know ({', '.join(unknown)}), so a "
                "newer one wrote it: use that one; the record stays as it is"
            )
        try:
            return _from_plain(cls, raw)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise SteradError(
                f"{source} is damaged, it lacks a field or has one too many ({error}): "
                "delete it and run again"
            ) from error


def _tuples(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    # A list holds lists or none: rows of numbers, most of a record, are taken as they are.
    return tuple(map(_tuples, value)) if value and isinstance(value[0], list) else tuple(value)


def _from_plain(cls: type[RunRecord], raw: dict[str, Any]) -> RunRecord:
    plain = {name: _tuples(value) for name, value in raw.items()}
    plain["config"], plain["execution"] = raw["config"], raw["execution"]
    plain["provenance"] = raw["provenance"]
    plain["stream"] = StreamFacts(**{k: _tuples(v) for k, v in raw["stream"].items()})
    plain["moments"] = tuple(
        Moment(**{k: _tuples(v) for k, v in moment.items()}) for moment in raw["moments"]
    )
    if raw["sphere"] is not None:
        frames = tuple(
            SphereFrame(**{k: _tuples(v) for k, v in frame.items()})
            for frame in raw["sphere"]["frames"]
        )
        plain["sphere"] = SpherePicture(_tuples(raw["sphere"]["classes"]), frames)
    return cls(**plain)
