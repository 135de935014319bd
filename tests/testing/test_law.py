"""check_law finds laws that break the contract and names the rule that they break."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.plugins import load_plugin
from sterad.sphere import LAWS, SphericalCauchy, SphericalLaw, VonMisesFisher
from sterad.testing import check_law


def test_valid_laws_pass() -> None:
    check_law(SphericalCauchy, (3,), (0.0, 2.0), draws=2000)
    check_law("projected-student-t", (3,), (1.0,), draws=2000, df=4.0)


class Unnormalized(VonMisesFisher):
    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        return concentration * cosine


class FallingDensity(VonMisesFisher):
    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        return VonMisesFisher.log_kernel_at(-cosine, concentration, dimension)


class WrongDraws(VonMisesFisher):
    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
        return 2 * uniform - 1


class WrongVariance(VonMisesFisher):
    @staticmethod
    def concentration_of(variance: float) -> float:
        return variance


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (Unnormalized, "has mass"),
        (FallingDensity, "does not rise with the cosine"),
        (WrongDraws, "do not follow the density"),
        (WrongVariance, "must be positive and fall"),
    ],
)
def test_an_invalid_law_raises_and_names_the_rule(law: type[VonMisesFisher], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_law(law, (3,), (2.0,), draws=2000)


def test_the_example_of_a_law_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LAWS, "_components", dict(LAWS._components))
    load_plugin(Path(__file__).parents[2] / "examples" / "my_law.py")
    check_law("linear", (3,), (0.0, 2.0), draws=2000)


def test_registration_names_what_a_law_does_not_define() -> None:
    class Empty(SphericalLaw):
        pass

    with pytest.raises(SteradError, match="does not define log_kernel_at, concentration_of"):
        LAWS.register("empty")(Empty)
    with pytest.raises(SteradError, match="is no subclass of SphericalLaw"):
        LAWS.register("empty")(int)  # type: ignore[arg-type]
