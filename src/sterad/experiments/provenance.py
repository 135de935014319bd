"""Provenance: which code, libraries and machine a number comes from."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any


def provenance() -> dict[str, Any]:
    """Return version, git commit, library versions and machine."""
    libraries = {name: importlib.metadata.version(name) for name in ("torch", "numpy")}
    return {
        "version": importlib.metadata.version("sterad"),
        "git_commit": _git_commit(),
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
