"""Launchers: how the runs of a study are executed, on this machine, with Ray, or with Slurm."""

from sterad.experiments.launchers.job import (
    LAUNCHERS,
    EventCallback,
    Job,
    Launcher,
    Outcome,
    check_data,
)
from sterad.experiments.launchers.local import Local
from sterad.experiments.launchers.ray import Ray
from sterad.experiments.launchers.slurm import Slurm

__all__ = [
    "LAUNCHERS",
    "EventCallback",
    "Job",
    "Launcher",
    "Local",
    "Outcome",
    "Ray",
    "Slurm",
    "check_data",
]
