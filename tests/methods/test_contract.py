"""Every registered method, and the method of the example, passes `check_method`."""

from pathlib import Path

import pytest

from sterad.methods import METHODS
from sterad.plugins import load_plugin
from sterad.testing import check_method

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_method.py"
QUICK = ("er", "fecam", "ncm", "randumb", "ridge", "slda")
"""Methods that `make test` checks as well; `make check` checks all."""
FIELDS = {"randumb": {"projection": 50}}
"""Values of methods that would take long with their defaults."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in METHODS],
)
def test_a_built_in_method_passes(name: str) -> None:
    check_method(name, METHODS[name].Config(**FIELDS.get(name, {})))


@pytest.mark.slow
def test_joint_training_under_a_law_passes() -> None:
    check_method("joint", METHODS["joint"].Config(law="angular-gaussian", projection=8, epochs=2))


def test_a_random_projection_passes() -> None:
    check_method("ridge", METHODS["ridge"].Config(projection=20))


def test_the_example_passes_and_has_at_most_30_lines() -> None:
    load_plugin(EXAMPLE)
    check_method("margin")
    code = [line for line in EXAMPLE.read_text().splitlines() if line.strip()]
    assert len(code) <= 30
