"""Every registered method, and the example's own, keeps the contract."""

from pathlib import Path

import pytest

from sterad.methods import METHODS
from sterad.plugins import load_plugin
from sterad.testing import check_method

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_method.py"


QUICK = ("agd-fd", "er")
"""Contracts that also `make test` walks; `make check` walks all of them."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in METHODS],
)
def test_built_in(name: str) -> None:
    check_method(name)


def test_a_users_method_of_25_lines() -> None:
    load_plugin(EXAMPLE)
    check_method("margin")
    code = [line for line in EXAMPLE.read_text().splitlines() if line.strip()]
    assert len(code) <= 30
