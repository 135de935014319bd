"""Waiting: how long threads look out for work before they sleep, said before torch is loaded.

Threads that spin on make torch ten times slower beside any other busy process; threads that sleep
at once come late to each of many small layers: a step of ten images then takes 1.5 times as long on
two cores, one of 74 images 1.3 times. Twenty microseconds of patience lose neither.
"""

from collections.abc import MutableMapping

BRIEFLY = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "2000"}
"""The second is a hundred a microsecond, and known to GNU's library alone, which torch brings."""


def wait_briefly(environment: MutableMapping[str, str]) -> None:
    """Say it in the environment of a process, unless its user has."""
    if "OMP_WAIT_POLICY" not in environment:
        environment.update(BRIEFLY)
