"""Sinks: where the events of a run go while it runs.

An event is a flat mapping with at least `event` (start, progress, evaluation, checkpoint, resume,
end), `step`, `steps` and `seconds`. A sink takes each and may ignore it.
"""

import sys

from sterad.sinks.bar import Bar
from sterad.sinks.json_lines import JsonLines
from sterad.sinks.mlflow import MLflow
from sterad.sinks.plain_lines import PlainLines
from sterad.sinks.sink import SINKS, Sink
from sterad.sinks.tensorboard import TensorBoard
from sterad.sinks.wandb import WeightsAndBiases

__all__ = [
    "SINKS",
    "Bar",
    "JsonLines",
    "MLflow",
    "PlainLines",
    "Sink",
    "TensorBoard",
    "WeightsAndBiases",
    "progress_sink",
]


def progress_sink(title: str) -> Bar | PlainLines:
    """Return a bar on a terminal and plain lines elsewhere."""
    return Bar(title) if sys.stderr.isatty() else PlainLines(title)
