import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.methods import METHODS
from sterad.registry import Registry, canonical, load_plugin, source_digest

GROUP = "sterad.test_shapes"


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    """Forget what a test has installed: its own modules alone, and its folder on the path."""
    paths = list(sys.path)
    yield
    for name in [one for one in sys.modules if one.startswith(("polygons", "sterad_plugin_mine"))]:
        del sys.modules[name]
    sys.path[:] = paths


@pytest.fixture
def shapes() -> Registry[Any]:
    registry: Registry[Any] = Registry("shape", GROUP)

    @registry.register("round-ball", alias=("sphere", "Old_Ball"))
    class Ball: ...

    @registry.register("cube")
    class Cube: ...

    return registry


@pytest.mark.parametrize("spelled", ["er-ace", "ER_ACE", " Er-Ace ", "er_ace"])
def test_one_spelling_for_all(spelled: str) -> None:
    assert canonical(spelled) == "er-ace"


@pytest.mark.parametrize("name", ["round-ball", "Round_Ball", "sphere", "SPHERE", "old-ball"])
def test_names_and_aliases_in_any_spelling(shapes: Registry[Any], name: str) -> None:
    assert shapes[name].__name__ == "Ball"
    assert shapes.resolve(name) == "round-ball"
    assert name in shapes


def test_listing_has_names_without_aliases(shapes: Registry[Any]) -> None:
    assert list(shapes) == ["cube", "round-ball"]
    assert "pyramid" not in shapes
    assert shapes.origin("cube").endswith("Cube")


def test_a_name_registered_in_another_spelling_is_found(shapes: Registry[Any]) -> None:
    shapes.register("My_Own")(int)
    assert shapes["my-own"] is int
    assert shapes["My_Own"] is int
    assert "my-own" in list(shapes)


@pytest.mark.parametrize(("wrong", "near"), [("cub", "cube"), ("spere", "sphere")])
def test_an_unknown_name_meets_the_nearest(shapes: Registry[Any], wrong: str, near: str) -> None:
    with pytest.raises(SteradError) as caught:
        shapes[wrong]
    told = str(caught.value)
    assert told.startswith(f"unknown shape {wrong!r}: did you mean {near!r}? ")
    assert "known are cube, round-ball" in told
    assert "--plugin" in told


def test_a_name_near_none_gets_no_guess(shapes: Registry[Any]) -> None:
    with pytest.raises(SteradError, match="unknown shape 'zzz': known are cube, round-ball"):
        shapes.resolve("zzz")


@pytest.mark.parametrize("name", ["cube", "CUBE", "sphere"])
def test_another_thing_under_a_taken_name_is_refused(shapes: Registry[Any], name: str) -> None:
    before = shapes[name]
    with pytest.raises(SteradError, match=r"already registered by .*: register .*dict.* under"):
        shapes.register(name)(dict)
    assert shapes[name] is before


def test_an_alias_does_not_hide_what_is_there(shapes: Registry[Any]) -> None:
    with pytest.raises(SteradError, match="the shape 'cube' is already registered"):
        shapes.register("dice", alias=("cube",))(dict)
    assert "dice" not in shapes
    assert shapes["cube"].__name__ == "Cube"


def test_the_same_thing_may_come_twice(shapes: Registry[Any]) -> None:
    cube = shapes["cube"]
    assert shapes.register("cube")(cube) is cube


PLUGIN = """
import tests_registry_bridge as bridge

@bridge.SHAPES.register("{name}")
class Mine:
    number = bridge.loads.append(1)
"""


class Bridge:
    """What plugins of these tests import, as theirs would import the package."""

    def __init__(self, shapes: Registry[Any]) -> None:
        self.SHAPES, self.loads = shapes, list[int]()


@pytest.fixture
def bridge(monkeypatch: pytest.MonkeyPatch, shapes: Registry[Any]) -> Bridge:
    made = Bridge(shapes)
    monkeypatch.setitem(sys.modules, "tests_registry_bridge", made)
    return made


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_plugin_registers_once(bridge: Bridge, tmp_path: Path) -> None:
    file = written(tmp_path / "mine.py", PLUGIN.format(name="pyramid"))
    load_plugin(file)
    load_plugin(str(file))
    assert bridge.SHAPES["pyramid"].__name__ == "Mine"
    assert bridge.loads == [1]


def test_two_plugins_may_share_a_file_name(bridge: Bridge, tmp_path: Path) -> None:
    load_plugin(written(tmp_path / "a" / "mine.py", PLUGIN.format(name="one")))
    load_plugin(written(tmp_path / "b" / "mine.py", PLUGIN.format(name="two")))
    assert bridge.SHAPES["one"] is not bridge.SHAPES["two"]


def test_a_plugin_that_takes_a_taken_name_is_told(bridge: Bridge, tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="the shape 'cube' is already registered by"):
        load_plugin(written(tmp_path / "mine.py", PLUGIN.format(name="cube")))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_a_plugin_that_raises_is_told_and_can_be_mended(
    bridge: Bridge, tmp_path: Path, text: str, told: str
) -> None:
    file = written(tmp_path / "mine.py", text)
    with pytest.raises(SteradError, match=f"mine.py' fails to import with {told}"):
        load_plugin(file)
    written(file, PLUGIN.format(name="mended"))
    load_plugin(file)
    assert "mended" in bridge.SHAPES


def test_what_is_no_plugin_is_named(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match=r"no\.py' is not a file: give the path of a Python file"):
        load_plugin(tmp_path / "no.py")
    with pytest.raises(SteradError, match="is not a file"):
        load_plugin(tmp_path)
    with pytest.raises(SteradError, match=r"its name must end in \.py"):
        load_plugin(written(tmp_path / "mine.txt", ""))


def installed(folder: Path, points: str, code: str, name: str = "polygons") -> None:
    """Write what `pip install` would leave of a package with entry points, and find it."""
    written(folder / f"{name}.py", code)
    info = folder / f"{name}-1.0.dist-info"
    written(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    written(info / "entry_points.txt", f"[{GROUP}]\n{points}\n")
    sys.path.insert(0, str(folder))


def test_installed_packages_are_found_when_first_asked(
    shapes: Registry[Any], tmp_path: Path
) -> None:
    installed(tmp_path, "Big_Star = polygons:Star", "class Star: ...")
    assert "polygons" not in sys.modules
    assert shapes["big-star"].__name__ == "Star"
    assert list(shapes) == ["big-star", "cube", "round-ball"]
    assert shapes.origin("big_star") == "polygons.Star"


def test_an_installed_package_that_registers_itself_is_no_double(
    shapes: Registry[Any], bridge: Bridge, tmp_path: Path
) -> None:
    installed(tmp_path, "star = polygons:Mine", PLUGIN.format(name="star"))
    assert shapes["star"].__module__ == "polygons"
    assert bridge.loads == [1]


def test_an_installed_package_does_not_replace_what_is_there(
    shapes: Registry[Any], tmp_path: Path
) -> None:
    installed(tmp_path, "cube = polygons:Cube", "class Cube: ...")
    assert shapes["cube"].__module__ != "polygons"


@pytest.mark.parametrize(
    ("code", "told"),
    [("1 / 0", "ZeroDivisionError"), ("", "AttributeError"), ("import nothing_like_it", "Module")],
)
def test_an_installed_package_that_raises_is_named(
    shapes: Registry[Any], tmp_path: Path, code: str, told: str
) -> None:
    installed(tmp_path, "star = polygons:Star", code)
    with pytest.raises(SteradError, match=f"'star' of the installed package 'polygons'.*{told}"):
        list(shapes)


def test_a_plugin_that_fails_to_load_fails_at_every_look_up(
    monkeypatch: pytest.MonkeyPatch, shapes: Registry[Any]
) -> None:
    point = importlib.metadata.EntryPoint("hexagon", "polygons_gone:Hexagon", GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    for _ in range(2):
        with pytest.raises(SteradError, match=r"'hexagon' of the installed .* fails to load"):
            shapes["cube"]


def test_what_is_no_name_is_refused(shapes: Registry[Any]) -> None:
    with pytest.raises(SteradError, match=r"the shape is given as int: .* one of cube, round-ball"):
        shapes.resolve(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("class M(Replay):\n    Config = ReplayConfig", "does not define loss: write what"),
        ("class M(Replay):\n    Config = 3\n    def loss(self, r, b): ...", "has no `Config`"),
        ("class M:\n    pass", "is no subclass of Learner: extend sterad.methods.Replay"),
        ("@dataclass\nclass C(ReplayConfig):\n    k: int = field()\n", "without a default, k"),
    ],
)
def test_a_method_plugin_that_lacks_something_is_refused(
    body: str, told: str, tmp_path: Path
) -> None:
    if "class M" not in body:
        body = body.replace("class C(ReplayConfig)", "class C") + (
            "class M(Replay):\n    Config = C\n    def loss(self, r, b): ..."
        )
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass, field\n"
        "from sterad.methods import METHODS, Replay, ReplayConfig\n"
        f"{body}\nMETHODS.register('flawed')(M)\n"
    )
    with pytest.raises(SteradError, match=f"the method 'flawed' of .* {told}"):
        load_plugin(file)
    assert "flawed" not in METHODS


def test_fields_without_a_dataclass_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from sterad.methods import METHODS, ReplayConfig\n"
        "from sterad.methods.er import ER\n"
        "class Config(ReplayConfig):\n    scale: float = 1.0\n"
        "@METHODS.register('forgetful')\nclass M(ER):\n    Config = Config\n"
    )
    with pytest.raises(SteradError, match=r"adds the field scale .* @dataclass\(frozen=True\)"):
        load_plugin(file)


def test_a_plugin_that_exits_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit(0)\n")
    with pytest.raises(SteradError, match="fails to import with SystemExit"):
        load_plugin(file)


def test_modules_beside_a_plugin_can_be_imported_and_count(tmp_path: Path) -> None:
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
