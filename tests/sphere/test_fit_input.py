"""Fits to points that determine no law: each has finite parameters or raises a sentence."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.errors import SteradError
from sterad.sphere import (
    AngularCentralGaussian,
    AngularGaussian,
    EllipticallySymmetricAngularGaussian,
    GeneralAngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphericalCauchy,
    Uniform,
    VonMisesFisher,
    Watson,
)

WITH_COVARIANCE: list[Any] = [
    AngularCentralGaussian,
    GeneralAngularGaussian,
    EllipticallySymmetricAngularGaussian,
]
WITH_AXIS: list[Any] = [
    *(VonMisesFisher, PowerSpherical, SphericalCauchy, AngularGaussian, ProjectedStudentT, Watson),
    Uniform,
]
each_law = pytest.mark.parametrize("law", WITH_AXIS + WITH_COVARIANCE, ids=lambda x: x.__name__)


def scattered() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return normalize(torch.randn(40, 4, generator=generator, dtype=torch.float64), dim=1)


def with_nan() -> Tensor:
    points = scattered()
    points[3, 1] = torch.nan
    return points


POLE = torch.eye(4, dtype=torch.float64)[:1]
UNDETERMINED: dict[str, Callable[[], Tensor]] = {
    "equal": lambda: POLE.repeat(30, 1),
    "antipodal": lambda: torch.cat([POLE, -POLE]).repeat(15, 1),
    "resultant zero": lambda: torch.cat([scattered(), -scattered()]),
    "one point": lambda: POLE,
    "fewer points than dimensions": lambda: scattered()[:3],
}


@each_law
@pytest.mark.parametrize("points", UNDETERMINED)
def test_points_that_determine_no_law(law: Any, points: str) -> None:
    if law in WITH_COVARIANCE and points != "resultant zero":
        with pytest.raises(SteradError, match=r"give at least 5 points|lie in a subspace"):
            law.fit(UNDETERMINED[points]())
    elif law is EllipticallySymmetricAngularGaussian:
        with pytest.raises(SteradError, match="the resultant of the points is zero"):
            law.fit(UNDETERMINED[points]())
    else:
        fit = law.fit(UNDETERMINED[points]())
        for name in fit.law.arg_constraints:
            assert bool(getattr(fit.law, name).isfinite().all())
        assert bool(fit.log_likelihood.isfinite())
        assert not any(bool(x.isnan().any()) for x in fit.standard_errors.values())


@each_law
def test_points_and_weights_that_are_refused(law: Any) -> None:
    ones = torch.ones(40, dtype=torch.float64)
    with pytest.raises(SteradError, match="points holds NaN"):
        law.fit(with_nan())
    with pytest.raises(SteradError, match="with at least one row"):
        law.fit(scattered()[:0])
    with pytest.raises(SteradError, match="a weight is -1"):
        law.fit(scattered(), -ones)
    with pytest.raises(SteradError, match="all weights of a fit are zero"):
        law.fit(scattered(), 0 * ones)
