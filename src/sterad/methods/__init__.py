"""Stage 10: the algorithms, one file each, registered on import; base/ holds what they share."""

from importlib import import_module
from pkgutil import iter_modules

from sterad.methods.base.boundaries import BoundaryConfig
from sterad.methods.base.learner import METHODS, Learner, Problem, build_learner
from sterad.methods.base.parts import Parts, ReplayConfig
from sterad.methods.base.replay import Replay

__all__ = [
    "METHODS",
    "BoundaryConfig",
    "Learner",
    "Parts",
    "Problem",
    "Replay",
    "ReplayConfig",
    "build_learner",
]

for _module in iter_modules(__path__, "sterad.methods."):
    import_module(_module.name)
