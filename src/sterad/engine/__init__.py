"""How a network is computed: device, dtype, threads, parallel passes, compiling, evaluation."""

from sterad.engine.engine import Engine
from sterad.engine.evaluator import Evaluator
from sterad.engine.execution import Execution

__all__ = ["Engine", "Evaluator", "Execution"]
