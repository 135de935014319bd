"""From the evaluations of a run to its metrics, and the records of other classifiers."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sterad.evaluation import metrics
from sterad.results.record import ClassifierResult, Moment, RunRecord


def final_accuracy(moments: Sequence[Moment], announced: bool) -> float:
    """Return the final average accuracy; `announced`: whether ends of tasks were announced."""
    if announced:
        return metrics.final_average_accuracy(accuracy_matrix(moments, announced))
    return moments[-1].accuracy


def accuracy_matrix(
    moments: Sequence[Moment], announced: bool
) -> tuple[tuple[float | None, ...], ...]:
    """Return the rows of the moments at announced ends of tasks, or of all if there are none."""
    return tuple(moment.cells for moment in moments if moment.boundary or not announced)


def summarize_moments(moments: Sequence[Moment], announced: bool) -> dict[str, Any]:
    """Return the fields of a record that depend on its moments alone."""
    matrix = accuracy_matrix(moments, announced)
    return {
        "moments": tuple(moments),
        "accuracy_matrix": matrix,
        "final_average_accuracy": final_accuracy(moments, announced),
        "average_forgetting": metrics.average_forgetting(matrix),
        "average_forgetting_released": metrics.average_forgetting_released(matrix),
        "backward_transfer": metrics.backward_transfer(matrix),
        "anytime_accuracy": metrics.anytime_accuracy([m.accuracy for m in moments if m.anytime]),
    }


def with_other_classifiers(records: Iterable[RunRecord]) -> Iterator[RunRecord]:
    """Yield each record, followed by one for each other classifier that it has results of.

    In tables they are rows of their own, which differ in the field `classifier` of the method.
    """
    for record in records:
        yield record
        yield from (record_of(record, one) for one in record.classifiers)


def record_of(record: RunRecord, result: ClassifierResult) -> RunRecord:
    """Return the record as if another classifier had predicted; nothing else differs."""
    method = dict(record.config["method"]) | {"classifier": result.name}
    return dataclasses.replace(
        record,
        id=f"{record.id}+{result.name}",
        config=dict(record.config) | {"method": method},
        **summarize_moments(result.moments, record.stream.announced),
        test_then_train_accuracy=None,
        confusion=(),
        losses=(),
        sphere=None,
        classifiers=(),
    )
