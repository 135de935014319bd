"""Registries: names, aliases, entry points, and components that are refused."""

import importlib.metadata
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from sterad.errors import SteradError
from sterad.methods import METHODS
from sterad.plugins import load_plugin
from sterad.registry import Registry, canonical_name

GROUP = "sterad.test_shapes"


@pytest.fixture(autouse=True)
def _restore_imports() -> Iterator[None]:
    """Remove the modules that a test has imported, and its folders from sys.path."""
    paths = list(sys.path)
    yield
    for name in [key for key in sys.modules if key.startswith(("polygons", "sterad_plugin_mine"))]:
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


@pytest.mark.parametrize("spelling", ["er-ace", "ER_ACE", " Er-Ace ", "er_ace"])
def test_names_have_one_canonical_spelling(spelling: str) -> None:
    assert canonical_name(spelling) == "er-ace"


@pytest.mark.parametrize("name", ["round-ball", "Round_Ball", "sphere", "SPHERE", "old-ball"])
def test_names_and_aliases_are_found_in_any_spelling(shapes: Registry[Any], name: str) -> None:
    assert shapes[name].__name__ == "Ball"
    assert shapes.resolve(name) == "round-ball"
    assert name in shapes


def test_iteration_excludes_aliases(shapes: Registry[Any]) -> None:
    assert list(shapes) == ["cube", "round-ball"]
    assert "pyramid" not in shapes
    assert shapes.qualified_name("cube").endswith("Cube")


def test_a_name_registered_in_another_spelling_is_found(shapes: Registry[Any]) -> None:
    shapes.register("My_Own")(int)
    assert shapes["my-own"] is int
    assert shapes["My_Own"] is int
    assert "my-own" in list(shapes)


@pytest.mark.parametrize(("wrong", "near"), [("cub", "cube"), ("spere", "sphere")])
def test_an_unknown_name_is_refused_with_the_nearest_one(
    shapes: Registry[Any], wrong: str, near: str
) -> None:
    with pytest.raises(SteradError) as caught:
        shapes[wrong]
    message = str(caught.value)
    assert message.startswith(f"unknown shape {wrong!r}: did you mean {near!r}? ")
    assert "known are cube, round-ball" in message
    assert "--plugin" in message


def test_a_name_far_from_all_others_gets_no_suggestion(shapes: Registry[Any]) -> None:
    with pytest.raises(SteradError, match="unknown shape 'zzz': known are cube, round-ball"):
        shapes.resolve("zzz")


@pytest.mark.parametrize("name", ["cube", "CUBE", "sphere"])
def test_a_second_component_under_a_registered_name_is_refused(
    shapes: Registry[Any], name: str
) -> None:
    before = shapes[name]
    with pytest.raises(SteradError, match=r"already registered by .*: register .*dict.* under"):
        shapes.register(name)(dict)
    assert shapes[name] is before


def test_an_alias_cannot_replace_a_registered_name(shapes: Registry[Any]) -> None:
    with pytest.raises(SteradError, match="the shape 'cube' is already registered"):
        shapes.register("dice", alias=("cube",))(dict)
    assert "dice" not in shapes
    assert shapes["cube"].__name__ == "Cube"


def test_the_same_component_can_be_registered_twice(shapes: Registry[Any]) -> None:
    cube = shapes["cube"]
    assert shapes.register("cube")(cube) is cube


def install_package(folder: Path, points: str, code: str, name: str = "polygons") -> None:
    """Write the files that `pip install` creates for a package, and add them to sys.path."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
    sys.path.insert(0, str(folder))


def test_entry_points_are_loaded_at_the_first_look_up(
    shapes: Registry[Any], tmp_path: Path
) -> None:
    install_package(tmp_path, "Big_Star = polygons:Star", "class Star: ...")
    assert "polygons" not in sys.modules
    assert shapes["big-star"].__name__ == "Star"
    assert list(shapes) == ["big-star", "cube", "round-ball"]
    assert shapes.qualified_name("big_star") == "polygons.Star"


def test_an_entry_point_that_also_registers_itself_is_registered_once(
    shapes: Registry[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polygons_registry", SimpleNamespace(SHAPES=shapes))
    code = "from polygons_registry import SHAPES\n@SHAPES.register('star')\nclass Star: ...\n"
    install_package(tmp_path, "star = polygons:Star", code)
    assert shapes["star"].__module__ == "polygons"
    assert list(shapes) == ["cube", "round-ball", "star"]


def test_an_entry_point_does_not_replace_a_registered_component(
    shapes: Registry[Any], tmp_path: Path
) -> None:
    install_package(tmp_path, "cube = polygons:Cube", "class Cube: ...")
    assert shapes["cube"].__module__ != "polygons"


@pytest.mark.parametrize(
    ("code", "message"),
    [("1 / 0", "ZeroDivisionError"), ("", "AttributeError"), ("import nothing_like_it", "Module")],
)
def test_an_entry_point_that_raises_names_its_package(
    shapes: Registry[Any], tmp_path: Path, code: str, message: str
) -> None:
    install_package(tmp_path, "star = polygons:Star", code)
    with pytest.raises(SteradError, match=f"'star' of the installed package 'polygons'.*{message}"):
        list(shapes)


def test_a_broken_entry_point_fails_at_every_look_up(
    monkeypatch: pytest.MonkeyPatch, shapes: Registry[Any]
) -> None:
    point = importlib.metadata.EntryPoint("hexagon", "polygons_gone:Hexagon", GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    for _ in range(2):
        with pytest.raises(SteradError, match=r"'hexagon' of the installed .* fails to load"):
            shapes["cube"]


def test_a_name_that_is_no_string_is_refused(shapes: Registry[Any]) -> None:
    with pytest.raises(SteradError, match=r"the shape is given as int: .* one of cube, round-ball"):
        shapes.resolve(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("class M(Replay):\n    Config = ReplayConfig", "does not define loss: define each"),
        ("class M(Replay):\n    Config = 3\n    def loss(self, r, b): ...", "has no `Config`"),
        ("class M:\n    pass", "is no subclass of Learner: extend sterad.methods.Replay"),
        ("@dataclass\nclass C(ReplayConfig):\n    k: int = field()\n", "without a default, k"),
    ],
)
def test_an_incomplete_method_is_refused(body: str, message: str, tmp_path: Path) -> None:
    if "class M" not in body:
        body = body.replace("class C(ReplayConfig)", "class C") + (
            "class M(Replay):\n    Config = C\n    def loss(self, r, b): ..."
        )
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass, field\n"
        "from sterad.methods import METHODS, Replay, ReplayConfig\n"
        f"{body}\nMETHODS.register('incomplete')(M)\n"
    )
    with pytest.raises(SteradError, match=f"the method 'incomplete' of .* {message}"):
        load_plugin(file)
    assert "incomplete" not in METHODS


def test_fields_without_the_dataclass_decorator_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from sterad.methods import METHODS, ReplayConfig\n"
        "from sterad.methods.er import ER\n"
        "class Config(ReplayConfig):\n    scale: float = 1.0\n"
        "@METHODS.register('forgetful')\nclass M(ER):\n    Config = Config\n"
    )
    with pytest.raises(SteradError, match=r"adds the field scale .* @dataclass\(frozen=True\)"):
        load_plugin(file)


@pytest.mark.parametrize("decorator", ["", "@dataclass(frozen=True)\n"])
@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("scale = 1.0", "sets scale in Mine .*: write `scale: float = ...`, or `scale: ClassVar"),
        ("lr = 0.5", "sets lr in Mine .*: write `lr: float = ...`"),
        ("limit = None", "sets limit in Mine .*: write `limit: float . None = ...`"),
    ],
)
def test_attributes_without_a_type_are_refused(
    tmp_path: Path, decorator: str, line: str, remedy: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from sterad.methods import METHODS, ReplayConfig\n"
        "from sterad.methods.er import ER\n"
        f"{decorator}class Mine(ReplayConfig):\n    {line}\n"
        "@dataclass(frozen=True)\nclass Config(Mine):\n    mine: int = 1\n"
        "@METHODS.register('forgetful')\nclass M(ER):\n    Config = Config\n"
    )
    with pytest.raises(SteradError, match=remedy):
        load_plugin(file)
    assert "forgetful" not in METHODS


def test_constants_methods_and_properties_of_a_config_are_accepted(shapes: Registry[Any]) -> None:
    @shapes.register("blob")
    @dataclass(frozen=True)
    class Blob:
        limit: ClassVar[int] = 3
        size: int = 1
        _hidden = 2

        @property
        def area(self) -> int:
            return self.size**2

        def grow(self) -> None: ...

    assert shapes["blob"] is Blob
