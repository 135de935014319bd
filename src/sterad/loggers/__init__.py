"""Loggers: where the events of a run go while it runs.

An event is a flat mapping with at least `event` (start, progress, evaluation, checkpoint, resume,
end), `step`, `steps` and `seconds`. A logger takes each and may ignore it.
"""

import sys

from sterad.loggers.bar import Bar
from sterad.loggers.json_lines import JsonLines
from sterad.loggers.logger import LOGGERS, Logger
from sterad.loggers.mlflow import MLflow
from sterad.loggers.plain_lines import PlainLines
from sterad.loggers.tensorboard import TensorBoard
from sterad.loggers.wandb import WeightsAndBiases

__all__ = [
    "LOGGERS",
    "Bar",
    "JsonLines",
    "Logger",
    "MLflow",
    "PlainLines",
    "TensorBoard",
    "WeightsAndBiases",
    "progress_logger",
]


def progress_logger(title: str) -> Bar | PlainLines:
    """Return a bar on a terminal and plain lines elsewhere."""
    return Bar(title) if sys.stderr.isatty() else PlainLines(title)
