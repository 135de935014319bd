"""Stage 8: the algorithms, one paper per file."""

from sterad.methods import finetune, fixed_directions
from sterad.methods.learner import METHODS, Learner
from sterad.methods.problem import Problem
from sterad.methods.replay import Replay, ReplayConfig

__all__ = [
    "METHODS",
    "Learner",
    "Problem",
    "Replay",
    "ReplayConfig",
    "finetune",
    "fixed_directions",
]
