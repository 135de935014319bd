"""Plugins: files of users that register components, and the digest of their code."""

import os
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

from sterad.errors import SteradError
from sterad.plugins import load_plugin, object_digest, source_digest
from sterad.registry import Registry

PLUGIN = """
import plugin_bridge as bridge

@bridge.SHAPES.register("{name}")
class Mine:
    number = bridge.loads.append(1)
"""


@pytest.fixture(autouse=True)
def _restore_imports() -> Iterator[None]:
    """Remove the modules that a test has imported, and its folders from sys.path."""
    paths = list(sys.path)
    yield
    for name in [key for key in sys.modules if key.startswith(("polygons", "sterad_plugin_mine"))]:
        del sys.modules[name]
    sys.path[:] = paths


class Bridge:
    """The module that the plugins of these tests import in place of sterad."""

    def __init__(self) -> None:
        self.SHAPES: Registry[Any] = Registry("shape", "sterad.test_shapes")
        self.SHAPES.register("cube")(int)
        self.loads: list[int] = []


@pytest.fixture
def bridge(monkeypatch: pytest.MonkeyPatch) -> Bridge:
    module = Bridge()
    monkeypatch.setitem(sys.modules, "plugin_bridge", module)
    return module


def write_file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_an_unchanged_plugin_is_loaded_once(bridge: Bridge, tmp_path: Path) -> None:
    file = write_file(tmp_path / "mine.py", PLUGIN.format(name="pyramid"))
    load_plugin(file)
    load_plugin(str(file))
    assert bridge.SHAPES["pyramid"].__name__ == "Mine"
    assert bridge.loads == [1]


def test_two_plugins_can_have_the_same_file_name(bridge: Bridge, tmp_path: Path) -> None:
    load_plugin(write_file(tmp_path / "a" / "mine.py", PLUGIN.format(name="one")))
    load_plugin(write_file(tmp_path / "b" / "mine.py", PLUGIN.format(name="two")))
    assert bridge.SHAPES["one"] is not bridge.SHAPES["two"]


def test_a_plugin_with_a_registered_name_is_refused(bridge: Bridge, tmp_path: Path) -> None:
    with pytest.raises(SteradError, match=r"mine.py' .*the shape 'cube' is already registered"):
        load_plugin(write_file(tmp_path / "mine.py", PLUGIN.format(name="cube")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_a_plugin_that_raises_is_refused_and_can_be_fixed(
    bridge: Bridge, tmp_path: Path, text: str, message: str
) -> None:
    file = write_file(tmp_path / "mine.py", text)
    with pytest.raises(SteradError, match=f"mine.py' fails to import with {message}"):
        load_plugin(file)
    write_file(file, PLUGIN.format(name="fixed"))
    load_plugin(file)
    assert "fixed" in bridge.SHAPES


def test_a_path_that_is_no_python_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match=r"no\.py' is not a file: give the path of a Python file"):
        load_plugin(tmp_path / "no.py")
    with pytest.raises(SteradError, match="is not a file"):
        load_plugin(tmp_path)
    with pytest.raises(SteradError, match="is not a file"):
        load_plugin(tmp_path / "zero\0byte.py")
    with pytest.raises(SteradError, match=r"its name must end in \.py"):
        load_plugin(write_file(tmp_path / "mine.txt", ""))


def test_a_plugin_that_exits_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit(0)\n")
    with pytest.raises(SteradError, match="fails to import with SystemExit"):
        load_plugin(file)


def test_the_digest_covers_modules_that_a_plugin_imports(tmp_path: Path) -> None:
    (tmp_path / "polygons_deep.py").write_text("K = 1\n")
    (tmp_path / "polygons_own.py").write_text("from polygons_deep import K\nimport numpy\n")
    file = tmp_path / "mine.py"
    file.write_text("import json\nimport polygons_own\nclass Shape: ...\n")
    load_plugin(file)
    (module,) = [m for name, m in sys.modules.items() if name.startswith("sterad_plugin_mine")]
    before = source_digest(module.Shape)
    assert before == source_digest(module.Shape)
    (tmp_path / "polygons_own.py").write_text("from polygons_deep import K\nimport numpy\n# new\n")
    after = source_digest(module.Shape)
    assert after != before


def test_an_object_is_identified_by_code_weights_and_captured_values() -> None:
    layer, rate = torch.nn.Linear(3, 2), 0.1
    copy = deepcopy(layer)
    assert object_digest(layer) == object_digest(copy)
    copy.weight.data[0, 0] += 1e-6
    assert object_digest(layer) != object_digest(copy)

    def make(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=rate)

    before = object_digest(make)
    rate = 0.2
    assert object_digest(make) != before
    rngs = [torch.Generator().manual_seed(seed) for seed in (0, 0, 1)]
    first, same, other = (object_digest({"rng": rng}) for rng in rngs)
    assert first == same != other


def test_the_digest_of_an_object_is_the_same_in_another_process() -> None:
    code = (
        "import functools, torch; from sterad.plugins import object_digest; "
        "print(object_digest([functools.partial(torch.optim.SGD, lr=0.1), {1, 'a'}, "
        "lambda x: x + 1, torch.arange(3, dtype=torch.bfloat16)]))"
    )
    results = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(results) == 1
