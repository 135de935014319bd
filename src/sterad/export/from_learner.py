"""build_predictor: the encoder and the rule of a learner, as of now, as one module."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sterad.classifiers import (
    LinearDiscriminant,
    LinearProbe,
    NearestMean,
    NearestNeighbors,
    RidgeRegression,
)
from sterad.encoders import Flatten
from sterad.encoders.heads import Cosine as CosineHead
from sterad.errors import SteradError
from sterad.export.layers import (
    MAX_DEGREE,
    Affine,
    Columns,
    Cosine,
    Double,
    Fourier,
    Layer,
    Linear,
    LogDensity,
    Mahalanobis,
    Means,
    Neighbors,
    ReLU,
    Traced,
    Unit,
)
from sterad.export.predictor import Predictor, split_encoder
from sterad.methods import Learner
from sterad.methods.base.closed_form import ClosedForm
from sterad.methods.base.from_scratch import FromScratch
from sterad.methods.base.frozen_encoder import FrozenEncoder
from sterad.methods.base.replay import Replay
from sterad.methods.base.shared_covariance import SharedCovariance
from sterad.methods.fecam import FeCAM
from sterad.methods.fixed_directions import FixedDirections
from sterad.methods.joint import Joint
from sterad.methods.ncm import NCM
from sterad.methods.pcr import PCR
from sterad.methods.randumb import RanDumb
from sterad.methods.ridge import Ridge
from sterad.sphere import FastLogKernel
from sterad.sphere.fast_log_kernel import chebyshev_coefficients

TOLERANCE = 1e-12
"""Relative error of the polynomial of a log-density."""
KNOWN_SCORES = (Replay.scores, FixedDirections.scores, FromScratch.scores)


def build_predictor(learner: Learner, input_dtype: str) -> tuple[Predictor, list[int]]:
    """Return the predictor of a consolidated learner, and the class index of each column.

    Weights are copied to the CPU in float32; learners in closed form keep their float64.
    """
    inner, shape = learner.inner, learner.problem.input_shape
    if isinstance(inner, ClosedForm):
        encoder: nn.Module = Flatten(shape, 1)
        answer, columns = [Double(), *_embedding(inner), _solved(inner)], inner.seen
    elif isinstance(inner, Replay) and type(inner).scores in KNOWN_SCORES:
        encoder = inner.predictor.encoder
        answer, columns = _replay_layers(inner)
    else:
        raise SteradError(
            f"{type(inner).__name__} has its own scores(), which cannot be exported: derive it "
            "from Replay and override class_scores, or from ClosedForm"
        )
    if isinstance(learner, FrozenEncoder):
        encoder = learner.evaluator.network.encoder
    inputs, module = split_encoder(deepcopy(encoder).cpu().float())
    module = module.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    return Predictor(module, nn.Sequential(*answer), shape, inputs, input_dtype), columns.tolist()


def _replay_layers(replay: Replay) -> tuple[list[Layer], Tensor]:
    """Return the layers after the encoder, and the labels of their columns."""
    retrained = getattr(replay, "retrained", None)
    if retrained is not None:
        return [*head_layers(retrained), *_class_scores(replay)], replay.seen
    if replay.parts.classifier is None:
        return [*head_layers(replay.predictor.head), *_class_scores(replay)], replay.seen
    fitted: Any = replay.fitted
    return [Unit(), *_classifier_layers(fitted)], fitted.labels


def head_layers(head: nn.Module) -> list[Layer]:
    """Return the layers of a head: see `make_head`."""
    if isinstance(head, nn.Sequential):
        return [layer for part in head for layer in head_layers(part)]
    if isinstance(head, CosineHead):
        return [Cosine(head.weight)]
    if isinstance(head, nn.Linear):
        return [Linear(head.weight, head.bias)]
    if isinstance(head, nn.ReLU):
        return [ReLU()]
    return [] if isinstance(head, nn.Identity) else [Traced(deepcopy(head), type(head).__name__)]


def _class_scores(replay: Replay) -> list[Layer]:
    """Return the layers from outputs of the head to scores of the seen classes."""
    method = type(replay).class_scores
    if isinstance(replay, FixedDirections) and method is FixedDirections.class_scores:
        probe = torch.zeros(1, replay.network.outputs)
        directions = replay.directions_for(probe)
        if replay.covariance is not None:
            return _whitened_scores(replay, replay.covariance, directions)
        by_class = Columns(replay.seen) if directions is None else Linear(directions[replay.seen])
        return [Unit(), by_class, log_density_layer(replay.log_density)]
    if isinstance(replay, Joint) and method is Joint.class_scores:
        if replay.law is None:
            return [Columns(replay.seen)]
        return [Unit(), Columns(replay.seen), log_density_layer(replay.log_density)]
    if isinstance(replay, PCR) and method is PCR.class_scores:
        return [Columns(replay.seen, replay.config.temperature)]
    if method is Replay.class_scores:
        return [Columns(replay.seen)]
    return [Traced(replay.class_scores, f"{type(replay).__name__}.class_scores")]


def _whitened_scores(
    replay: FixedDirections, covariance: SharedCovariance, directions: Tensor | None
) -> list[Layer]:
    """Return the layers of log-densities with a shared covariance."""
    limit, probe = replay.log_density.concentration, torch.zeros(1)
    whitening, means, constants = covariance.terms(probe, replay.seen, directions, limit)
    density = log_density_layer(replay.log_density)
    constants = constants.double()  # as the densities are
    add_constants = Linear(torch.eye(len(constants), dtype=torch.float64), constants)
    return [Unit(), Linear(whitening), Unit(), Linear(means), density, add_constants]


def log_density_layer(kernel: FastLogKernel) -> LogDensity:
    """Return the log-density of a law with fixed parameters as a polynomial in the cosine."""

    def evaluate(cosine: Tensor) -> Tensor:
        kappa = cosine.new_tensor(kernel.concentration)
        return kernel.law.log_kernel_at(cosine, kappa, kernel.dimension, **kernel.shape)

    series = chebyshev_coefficients(evaluate, 2 * MAX_DEGREE)
    tolerance = TOLERANCE * max(1.0, float(abs(series).max()))
    degree = int(np.flatnonzero(abs(series) > tolerance).max(initial=0))
    if degree > MAX_DEGREE:
        raise SteradError(
            f"the log-density of {kernel.law.__name__} with concentration "
            f"{kernel.concentration:.4g} in {kernel.dimension} dimensions is too steep for a "
            "polynomial: export with classifier=nearest-mean, or train with a larger variance"
        )
    return LogDensity(series[: degree + 1].tolist())


def _classifier_layers(fitted: Any) -> list[Layer]:
    """Return the layers of a classifier that was fitted to unit-length features."""
    if type(fitted) is NearestMean:
        return [Means(fitted.means, fitted.labels, fitted.variance)]
    if type(fitted) is LinearProbe:
        return [Linear(fitted.weight, fitted.bias)]
    if type(fitted) in (LinearDiscriminant, RidgeRegression):
        return [Affine(fitted.center, fitted.weights, fitted.bias)]
    if type(fitted) is NearestNeighbors:
        return [Neighbors(fitted.features, fitted.rows, fitted.labels)]
    return [Traced(fitted.scores, f"{type(fitted).__name__}.scores")]


def _embedding(learner: ClosedForm) -> list[Layer]:
    """Return the layers from inputs to the features of a learner in closed form."""
    embed = type(learner).embed
    if embed is ClosedForm.embed:
        return []
    if isinstance(learner, NCM) and embed is NCM.embed:
        return [Unit()] if learner.config.normalize else []
    if embed is FeCAM.embed:
        return [Unit()]
    if isinstance(learner, Ridge) and embed is Ridge.embed:
        return [] if learner.weights is None else [Linear(learner.weights.T), ReLU()]
    if isinstance(learner, RanDumb) and embed is RanDumb.embed:
        return [Fourier(learner.frequencies, learner.phases)]
    return [Traced(learner.embed, f"{type(learner).__name__}.embed")]


def _solved(learner: ClosedForm) -> Layer:
    """Return the layer of the scores that a learner in closed form has solved for."""
    solution, method = learner.solution, type(learner).class_scores
    if method is ClosedForm.class_scores:
        return Affine(solution.center, solution.weights, solution.bias)
    if method is FeCAM.class_scores:
        means, factors = (torch.stack(one) for one in zip(*solution, strict=True))
        identity = torch.eye(factors.shape[1], dtype=factors.dtype, device=factors.device)
        inverses = torch.linalg.solve_triangular(factors, identity, upper=False)
        return Mahalanobis(means, inverses)
    score: Callable[[Tensor], Tensor] = partial(learner.class_scores, solution=solution)
    return Traced(score, f"{type(learner).__name__}.class_scores")
