"""The laws need torch and numpy alone, and can be built as a wheel of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BLOCK_OTHERS = """
import importlib.abc, re, sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

def with_requirements(name, found):
    name = re.sub("[-_.]+", "-", name).lower()
    if name not in found:
        found.add(name)
        try:
            needed = requires(name) or []
        except PackageNotFoundError:
            return found
        for line in needed:
            if "extra ==" not in line:
                with_requirements(re.match("[A-Za-z0-9._-]+", line)[0], found)
    return found

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is blocked")
        return None

# torch imports its own requirements (sympy, networkx, ...) when it needs them.
allowed = with_requirements("torch", set()) | {"numpy"} | ALLOWED
BLOCKED = {
    module
    for module, names in packages_distributions().items()
    if not {re.sub("[-_.]+", "-", name).lower() for name in names} & allowed
}
sys.meta_path.insert(0, Block())
import torch
"""

USE_A_LAW = """
law = sphere.VonMisesFisher(torch.eye(5)[0], 3.0)
points = law.sample(torch.Size([200]), generator=torch.Generator().manual_seed(0))
fit = sphere.VonMisesFisher.fit(points)
low, high = fit.confidence_interval(0.999)
assert low < 3 < high
assert float(torch.distributions.kl_divergence(fit.law, law)) < 0.1
assert 0 < float(sphere.AngularGaussian(law.mean_direction, 1.0).cdf(0.0)) < 0.5
later = {name.partition(".")[0] for name in sys.modules} & BLOCKED
assert not later, later
print("used", sphere.__name__, len(BLOCKED))
"""


def run(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_the_laws_needs_torch_and_numpy_alone() -> None:
    code = BLOCK_OTHERS.replace("ALLOWED", "{'sterad'}")
    output = run(code + "import sterad.sphere as sphere\n" + USE_A_LAW)
    name, blocked = output.split()[1:]
    assert name == "sterad.sphere"
    assert int(blocked) > 20  # the packages of the development environment are blocked


@pytest.mark.slow
def test_the_wheel_works_without_sterad(tmp_path: Path) -> None:
    wheels, target = tmp_path / "wheels", tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels)]
    subprocess.run([*build, str(ROOT / "sphere")], check=True, capture_output=True)
    (wheel,) = wheels.glob("sterad_sphere-*.whl")
    install = [*pip, "install", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    code = BLOCK_OTHERS.replace("ALLOWED", "{'sterad-sphere'}") + "BLOCKED |= {'sterad'}\n"
    output = run(code + "import sterad_sphere as sphere\n" + USE_A_LAW, PYTHONPATH=str(target))
    assert output.startswith("used sterad_sphere")
