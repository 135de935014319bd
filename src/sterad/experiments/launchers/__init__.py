"""Launchers: who runs the runs of a study. One protocol, three ways."""

from sterad.experiments.launchers.job import LAUNCHERS, Job, Launcher, Outcome, Watch, check_data
from sterad.experiments.launchers.local import Local
from sterad.experiments.launchers.ray import Ray
from sterad.experiments.launchers.slurm import Slurm

__all__ = [
    "LAUNCHERS",
    "Job",
    "Launcher",
    "Local",
    "Outcome",
    "Ray",
    "Slurm",
    "Watch",
    "check_data",
]
