"""Every module can be imported on systems without the Unix modules of the standard library."""

import subprocess
import sys

IMPORT_ALL = """
import importlib, os, pkgutil, sys, warnings

for module in ("fcntl", "resource", "pwd", "termios"):
    sys.modules[module] = None  # importing it raises ImportError
for function in ("sched_getaffinity", "fork", "getuid"):
    if hasattr(os, function):
        delattr(os, function)
# filelock knows Windows by sys.platform and warns about a Unix without fcntl.
warnings.filterwarnings("ignore", "only soft file lock is available")

import sterad

for module in pkgutil.walk_packages(sterad.__path__, "sterad."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
        print(module.name)
"""


def test_every_module_imports_without_unix_modules() -> None:
    result = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert {"sterad.files", "sterad.cli.train", "sterad.data.cache"} <= set(result.stdout.split())
