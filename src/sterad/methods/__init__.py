"""Stage 8: the algorithms, one paper per file; a file in this folder is a method that is known."""

from importlib import import_module
from pkgutil import iter_modules

from sterad.methods.boundaries import BoundaryConfig
from sterad.methods.learner import METHODS, Learner, build_learner
from sterad.methods.problem import Problem
from sterad.methods.replay import Replay, ReplayConfig

__all__ = [
    "METHODS",
    "BoundaryConfig",
    "Learner",
    "Problem",
    "Replay",
    "ReplayConfig",
    "build_learner",
]

for _module in iter_modules(__path__, "sterad.methods."):
    import_module(_module.name)
