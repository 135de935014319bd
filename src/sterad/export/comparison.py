"""Comparison of an exported graph with its learner, before the file is written."""

import warnings
from copy import copy
from typing import Any

import numpy as np
from torch import Tensor, dtype, float32, uint8

from sterad.engine import Evaluator
from sterad.errors import SteradError
from sterad.export.predictor import Predictor
from sterad.methods import Learner
from sterad.methods.base.frozen_encoder import FrozenEncoder
from sterad.methods.base.prediction_copy import copy_module, prediction_copy
from sterad.methods.base.rollback import replay_of

MAX_ERROR = 1e-4
"""Largest difference of scores, relative to the largest score if that is above 1."""


class PrecisionWarning(UserWarning):
    """The exported graph computes its encoder in float32, the classifier in another precision."""


def encoder_precision(learner: Learner) -> str:
    """Return the precision in which a learner computes its encoder: float32 without weights."""
    replay, dtypes = replay_of(learner), set[dtype]()
    if replay is not None:
        dtypes.add(replay.engine.network.precision)
    if isinstance(learner, FrozenEncoder):
        dtypes.add(learner.evaluator.network.precision)
    half = dtypes - {float32}
    return str(min(half, key=str)).removeprefix("torch.") if half else "float32"


def warn_of_precision(precision: str, stacklevel: int) -> None:
    """Warn that a few labels may differ, unless classifier and graph have the same precision."""
    if precision != "float32":
        warnings.warn(
            f"the classifier computes its encoder in {precision} and the exported graph in "
            "float32, so that scores differ by about 1 % and some labels differ from those of "
            "predict: make the classifier with precision='float32' for equal ones",
            PrecisionWarning,
            stacklevel=stacklevel,
        )


def expected_scores(learner: Learner, predictor: Predictor, example: Tensor) -> Any:
    """Return the scores of a consolidated learner, with its encoder in float32 as in the graph."""
    if encoder_precision(learner) != "float32":
        learner = in_float32(learner)
    # Pixels of 8 bits, as `predict` makes them.
    is_image = len(predictor.input_shape) == 3
    whole = example if example.dtype == uint8 else (example * 255).round()
    return learner.scores(whole.float() / 255 if is_image else example)[0].numpy()


def in_float32(learner: Learner) -> Learner:
    """Return a copy that predicts with the same weights and classifier, its encoder in float32."""
    new = prediction_copy(learner)
    if isinstance(new, FrozenEncoder):
        new.evaluator = _evaluator_in_float32(new.evaluator)
    replay, source = replay_of(new), replay_of(learner)
    if replay is not None and source is not None:
        replay.fitted = source.fitted
        replay.engine.network.precision = float32
        if replay.teacher is not None:
            replay.teacher.network.precision = float32
    return new


def _evaluator_in_float32(evaluator: Evaluator) -> Evaluator:
    new = copy(evaluator)
    new.network, new._buffers, new._evaluations = copy_module(evaluator.network), {}, 0
    new.network.precision = float32
    return new


def check_scores(found: Any, expected: Any, method: str) -> None:
    """Refuse an export whose scores are not those of the learner."""
    finite = np.isfinite(expected)
    scale = max(1.0, float(np.abs(expected[finite]).max(initial=0.0)))
    is_equal = found.shape == expected.shape and bool((np.isfinite(found) == finite).all())
    differences = found[finite] - expected[finite] if is_equal else np.array([np.inf])
    error = float(np.abs(differences).max(initial=0.0))
    if not error <= MAX_ERROR * scale:
        raise SteradError(
            f"the exported graph of {method} gives other scores than predict "
            f"(difference {error:.3g}): check that the encoder computes the same for every batch"
        )
