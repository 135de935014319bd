"""Distribution functions, entropies, divergences and fits against references.json.

The file has values of every law in every dimension of `oracle.DIMENSIONS`, computed by
make_references.py with mpmath at 50 digits.
"""

from typing import Any

import mpmath as mp
import pytest
import torch
from torch.distributions import kl_divergence

from tests.sphere import make_references, oracle
from tests.sphere.make_references import make_law, turned_axis

REFERENCES = make_references.read()
RECOMPUTED = (5, 512)
"""Dimensions that a slow test computes again."""


def name_of(cell: dict[str, Any]) -> str:
    law = cell.get("law") or f"{cell['first'][0]}-{cell['second'][0]}"
    return f"{law}-{cell['dimension']}"


def is_slow(cell: dict[str, Any]) -> bool:
    """Return whether a cell takes seconds: those of ProjectedStudentT, of which two are quick."""
    name, d = name_of(cell), cell["dimension"]
    if "entropy" in cell and "first" in cell:  # with a covariance
        return d > 128 or name == "VonMisesFisher-GeneralAngularGaussian-16"
    return "ProjectedStudentT" in name and d not in (3, 512)


def each(kind: str) -> pytest.MarkDecorator:
    cells = [
        pytest.param(cell, id=name_of(cell), marks=[pytest.mark.slow] if is_slow(cell) else [])
        for cell in REFERENCES[kind]
    ]
    return pytest.mark.parametrize("cell", cells)


def test_every_law_has_every_dimension() -> None:
    laws = set(oracle.KERNELS)
    for dimension in oracle.DIMENSIONS:
        found = {
            kind: [cell for cell in cells if cell["dimension"] == dimension]
            for kind, cells in REFERENCES.items()
        }
        assert {cell["law"] for cell in found["moments"]} == laws
        assert {cell["first"][0] for cell in found["divergences"]} == laws
        assert {cell["second"][0] for cell in found["divergences"]} == laws
        assert {cell["law"] for cell in found["fits"]} == set(oracle.SCORES)


@each("moments")
def test_entropy_and_both_tails(cell: dict[str, Any]) -> None:
    law = make_law(cell["law"], cell["dimension"], cell["concentration"])
    assert law.entropy().item() == pytest.approx(float(cell["entropy"]), rel=1e-8, abs=1e-8)
    cosines = torch.tensor(cell["cosines"], dtype=torch.float64)
    tails = [[float(x) for x in pair] for pair in cell["tails"]]
    below, above = torch.tensor(tails, dtype=torch.float64).unbind(1)
    assert torch.allclose(law.cdf(cosines), below, rtol=1e-8, atol=0)
    assert torch.allclose(law.sf(cosines), above, rtol=1e-8, atol=0)
    assert torch.allclose(law.icdf(below), cosines, rtol=0, atol=1e-8)


@each("divergences")
def test_divergence(cell: dict[str, Any]) -> None:
    d = cell["dimension"]
    (p_name, p_kappa), (q_name, q_kappa) = cell["first"], cell["second"]
    p, q = make_law(p_name, d, p_kappa), make_law(q_name, d, q_kappa, turned_axis(d))
    assert kl_divergence(p, q).item() == pytest.approx(float(cell["divergence"]), rel=1e-8)


@each("covariances")
def test_covariance(cell: dict[str, Any]) -> None:
    d = cell["dimension"]
    (p_name, p_kappa), (q_name, q_kappa) = cell["first"], cell["second"]
    p, q = make_law(p_name, d, p_kappa), make_law(q_name, d, q_kappa, turned_axis(d))
    assert p.entropy().item() == pytest.approx(float(cell["entropy"]), rel=1e-8)
    assert kl_divergence(p, q).item() == pytest.approx(float(cell["divergence"]), rel=1e-8)


@each("fits")
def test_fitted_concentration(cell: dict[str, Any]) -> None:
    found = make_references.fitted_concentration(cell["law"], cell["dimension"])
    assert found == pytest.approx(float(cell["concentration"]), rel=1e-8)


def assert_same(found: mp.mpf | str, stored: str) -> None:
    with mp.workdps(oracle.DIGITS):
        assert abs(mp.mpf(found) / mp.mpf(stored) - 1) < mp.mpf(10) ** -16


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell", [c for c in REFERENCES["moments"] if c["dimension"] in RECOMPUTED], ids=name_of
)
def test_other_nodes_give_the_same_moments(cell: dict[str, Any]) -> None:
    name, d, kappa = cell["law"], cell["dimension"], cell["concentration"]
    found = make_references.moments(name, d, kappa, cell["cosines"], count=30)
    assert_same(found["entropy"], cell["entropy"])
    for pair, stored in zip(found["tails"], cell["tails"], strict=True):
        for one, other in zip(pair, stored, strict=True):
            assert_same(one, other)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell", [c for c in REFERENCES["divergences"] if c["dimension"] in RECOMPUTED], ids=name_of
)
def test_other_nodes_give_the_same_divergence(cell: dict[str, Any]) -> None:
    found = make_references.divergence(cell["first"], cell["second"], cell["dimension"], count=34)
    assert_same(found, cell["divergence"])


@pytest.mark.slow
def test_two_formulas_of_the_projected_student_t() -> None:
    """The positive series in (1 + b)/2 equals Gauss's functions of b²."""
    with mp.workdps(oracle.DIGITS):
        for d, kappa in ((2, 5.0), (16, 3.0), (128, 12.0)):
            k, nu, n = mp.mpf(kappa), mp.mpf(oracle.DF), mp.mpf(d)
            kernel = oracle.projected_student_t(kappa, d)
            for t in (mp.mpf("0.2"), mp.mpf("0.9")):
                b = k * t / mp.sqrt(nu + k * k)
                odd = 2 * b * mp.gammaprod([(n + 1) / 2, (nu + 1) / 2], [n / 2, nu / 2])
                value = mp.hyp2f1(n / 2, nu / 2, 0.5, b * b)
                value += odd * mp.hyp2f1((n + 1) / 2, (nu + 1) / 2, 1.5, b * b)
                expected = mp.log(value) - nu / 2 * mp.log1p(k * k / nu)
                assert abs(kernel(t) - expected) < mp.mpf(10) ** -40
