"""run: its clock, and what it restores for the caller."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch

from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig
from sterad.experiments.run import run

TINY = {"dataset": "synthetic", "classes": 2, "per_class": 4, "test_per_class": 2, "tasks": 2}
OPENING_S = 1.0


class SlowLogger:
    """A logger that takes a second to open, as a database may."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> Self:
        time.sleep(OPENING_S)
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        self.seconds[event["event"]] = event["seconds"]

    def __exit__(self, *_: object) -> None:
        pass


def test_the_clock_starts_after_the_loggers_are_open(tmp_path: Path) -> None:
    logger = SlowLogger()
    config = RunConfig.of(method="finetune", memory=2, width=2, **TINY)
    run(config, tmp_path, Execution(threads=1), loggers=[logger])
    assert logger.seconds["start"] < OPENING_S


def test_a_run_restores_the_callers_threads(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        config = RunConfig.of(method="finetune", memory=2, width=2, **TINY)
        run(config, tmp_path, Execution(threads=1))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
