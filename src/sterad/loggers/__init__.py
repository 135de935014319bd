"""Loggers: receivers of the events of a run.

An event is a flat mapping with at least `event` (start, progress, evaluation, checkpoint, resume,
end), `step`, `steps` and `seconds`. A logger ignores the events that it does not use.
"""

from sterad.loggers.logger import LOGGERS, JsonLines, Logger
from sterad.loggers.progress import ProgressBar, ProgressLines, progress_logger
from sterad.loggers.trackers import MLflow, TensorBoard, WeightsAndBiases

__all__ = [
    "LOGGERS",
    "JsonLines",
    "Logger",
    "MLflow",
    "ProgressBar",
    "ProgressLines",
    "TensorBoard",
    "WeightsAndBiases",
    "progress_logger",
]
