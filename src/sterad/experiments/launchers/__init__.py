"""Launchers: who runs the runs of a study. One protocol, three ways."""

from sterad.experiments.launchers.job import LAUNCHERS, Job, Launcher, Outcome, Watch
from sterad.experiments.launchers.local import Local

__all__ = ["LAUNCHERS", "Job", "Launcher", "Local", "Outcome", "Watch"]
