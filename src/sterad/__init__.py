"""Online continual learning with laws on the unit sphere.

    from sterad import OnlineClassifier, RunConfig, run

Names are imported on first use, so that `import sterad` is fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sterad.data import Dataset
    from sterad.estimator import OnlineClassifier
    from sterad.experiments.config import RunConfig
    from sterad.experiments.run import run
    from sterad.experiments.study import Study
    from sterad.export import load_exported, push_to_hub
    from sterad.methods import METHODS
    from sterad.results.record import RunRecord

_MODULES = {
    "METHODS": "sterad.methods",
    "Dataset": "sterad.data",
    "OnlineClassifier": "sterad.estimator",
    "RunConfig": "sterad.experiments.config",
    "RunRecord": "sterad.results.record",
    "Study": "sterad.experiments.study",
    "load_exported": "sterad.export",
    "push_to_hub": "sterad.export",
    "run": "sterad.experiments.run",
}

__all__ = [
    "METHODS",
    "Dataset",
    "OnlineClassifier",
    "RunConfig",
    "RunRecord",
    "Study",
    "load_exported",
    "push_to_hub",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sterad' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
