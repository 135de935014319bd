"""Provenance: which code, libraries and machine a number comes from."""

import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

SHIPPED = "STERAD_SHIPPED"
"""Environment variable with the `code()` of the machine that sent the code."""


def code() -> dict[str, Any]:
    """Return version and git commit, also on a machine where the package is not installed."""
    if SHIPPED in os.environ:
        sent: dict[str, Any] = json.loads(os.environ[SHIPPED])
        return sent
    return {"version": importlib.metadata.version("sterad"), "git_commit": _git_commit()}


def provenance() -> dict[str, Any]:
    """Return version, git commit, library versions and machine."""
    libraries = {name: importlib.metadata.version(name) for name in ("torch", "numpy")}
    return {
        **code(),
        "python": platform.python_version(),
        **libraries,
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
        "cores": os.cpu_count(),
    }


def _git_commit() -> str | None:
    folder = Path(__file__).parents[1]
    command = ["git", "-C", str(folder), "log", "-1", "--format=%H", "--", "."]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
