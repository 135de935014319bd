"""Contracts that anyone can run on their own methods and laws."""

from sterad.testing.law import check_law
from sterad.testing.method import check_method

__all__ = ["check_law", "check_method"]
