"""Contracts to run on your own methods, laws and memory policies."""

from sterad.testing.law import check_law
from sterad.testing.memory import check_memory
from sterad.testing.method import check_method

__all__ = ["check_law", "check_memory", "check_method"]
