"""CPU threads: how many a process may use, and how long idle ones spin before they sleep.

No torch here: the wait policy must be set before torch is imported.
"""

import math
import os
from collections.abc import MutableMapping
from pathlib import Path

WAIT_POLICY = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "2000"}
"""Idle threads that keep spinning make torch ten times slower beside any other busy process; those
that sleep at once wake up late for each of many small layers, and a step of ten images takes 1.5
times as long on two cores. A 20 µs spin before sleeping avoids both costs. The second variable
counts spins, about a hundred a microsecond, and is known to GNU's library alone, which torch ships.
"""


def set_wait_policy(environment: MutableMapping[str, str]) -> None:
    """Set the variables unless the user has set the first."""
    if "OMP_WAIT_POLICY" not in environment:
        environment.update(WAIT_POLICY)


def usual_threads() -> int:
    """Return the threads of a run where the user says nothing: OMP_NUM_THREADS, or the cores."""
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return min(cores(), int(said)) if said.isdecimal() and int(said) else cores()


def cores() -> int:
    """Return the cores that this process may use: by its affinity and its cgroup's quota."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    try:
        member = Path("/proc/self/cgroup").read_text()
    except OSError:
        member = ""
    return max(1, math.ceil(min(count, quota_of(Path("/sys/fs/cgroup"), member))))


def quota_of(mounted: Path, member: str) -> float:
    """Return the cores' worth of time that a process may use, infinite without a limit.

    mounted: the cgroup filesystem; member: /proc/self/cgroup, a line `number:controllers:path` a
    hierarchy. A limit of any folder on the way to the path holds: version 2 keeps it in `cpu.max`,
    version 1 in two files.
    """
    limits = [math.inf]
    for line in member.splitlines():
        _, controllers, path = line.split(":", 2)
        home = mounted if controllers == "" else mounted / "cpu"
        if controllers == "" or "cpu" in controllers.split(","):
            steps = Path(path.strip("/")).parts
            folders = [home.joinpath(*steps[:depth]) for depth in range(len(steps) + 1)]
            limits += [_quota(folder) for folder in folders]
    return min(limits)


def _quota(folder: Path) -> float:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        return math.inf if quota in ("max", "-1") else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
