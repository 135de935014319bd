"""CPU threads: how many a process may use, and how long idle ones spin before they sleep.

No torch here: the wait policy must be set before torch is imported.
"""

import math
import os
from collections.abc import MutableMapping
from pathlib import Path

WAIT_POLICY = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "2000"}
"""How OpenMP threads wait: spin for 20 µs, then sleep.

Threads that keep spinning make torch ten times slower beside another busy process. Threads that
sleep at once wake up late for small layers: a step of ten images takes 1.5 times as long on two
cores. GOMP_SPINCOUNT counts spins, about 100 per microsecond, in GNU OpenMP, which torch ships.
"""


def set_wait_policy(environment: MutableMapping[str, str]) -> None:
    """Set WAIT_POLICY in an environment unless the user has set OMP_WAIT_POLICY."""
    if "OMP_WAIT_POLICY" not in environment:
        environment.update(WAIT_POLICY)


def default_threads() -> int:
    """Return the default number of threads of a run: OMP_NUM_THREADS, at most the cores."""
    value = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return min(cores(), int(value)) if value.isdecimal() and int(value) else cores()


def cores() -> int:
    """Return the number of cores that affinity and cgroup quota allow this process."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    try:
        membership = Path("/proc/self/cgroup").read_text()
    except OSError:
        membership = ""
    return max(1, math.ceil(min(count, cgroup_quota(Path("/sys/fs/cgroup"), membership))))


def cgroup_quota(mount_point: Path, membership: str) -> float:
    """Return how many cores a cgroup may use, infinity without a limit.

    mount_point: the cgroup filesystem; membership: the text of /proc/self/cgroup, one line
    `number:controllers:path` per hierarchy. The smallest limit of all folders along the path
    applies: version 2 stores it in `cpu.max`, version 1 in two files.
    """
    limits = [math.inf]
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        root = mount_point if controllers == "" else mount_point / "cpu"
        if controllers == "" or "cpu" in controllers.split(","):
            parts = Path(path.strip("/")).parts
            folders = [root.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
            limits += [_read_quota(folder) for folder in folders]
    return min(limits)


def _read_quota(folder: Path) -> float:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        return math.inf if quota in ("max", "-1") else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
