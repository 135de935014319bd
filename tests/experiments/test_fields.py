from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from sterad.errors import SteradError
from sterad.experiments.fields import build, checked, names_of, unknown


@dataclass(frozen=True)
class Options:
    views: int = 5
    lr: float = 0.1
    head: str = "mlp"
    flip: bool = False
    optimiser: Literal["adam", "sgd"] = "adam"
    width: int | None = None
    order: tuple[int, ...] | None = None
    scale: int | str = 1
    shared: ClassVar[int] = 3


def test_right_values_are_taken_as_they_are() -> None:
    values = {"views": 1, "lr": 0.5, "head": "none", "flip": True, "optimiser": "sgd", "width": 3}
    assert build(Options, values) == Options(1, 0.5, "none", True, "sgd", 3)
    assert build(Options, {}) == Options()


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, float, 1.0),
        (np.float64(0.5), float, 0.5),
        (np.float32(0.5), float, 0.5),
        (np.int64(3), float, 3.0),
        (np.int64(3), int, 3),
        (np.uint8(3), int | None, 3),
        (None, int | None, None),
        ([2, 0], tuple[int, ...], (2, 0)),
        ((2, 0), tuple[int, ...] | None, (2, 0)),
        ([1, 2], tuple[float, ...], (1.0, 2.0)),
        (4, int | str, 4),
        ("a", int | str, "a"),
        ({"a": 1}, dict[str, int], {"a": 1}),
    ],
)
def test_values_take_the_type_of_their_field(value: Any, hint: Any, expected: Any) -> None:
    taken = checked("x", value, hint)
    assert taken == expected
    # A numpy number would be equal too, and then neither JSON nor a checkpoint would take it.
    assert type(taken) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("views", 1.5, "views = 1.5 is a float: give it as int"),
        ("views", True, "views = True is a bool: give it as int"),
        ("views", "2", "views = '2' is a str: give it as int"),
        ("views", None, "views = None is a NoneType: give it as int"),
        ("lr", "fast", "lr = 'fast' is a str: give it as float"),
        ("lr", False, "lr = False is a bool: give it as float"),
        ("flip", 1, "flip = 1 is a int: give it as bool"),
        ("head", ["mlp"], r"head = \['mlp'\] is a list: give it as str"),
        ("optimiser", "lion", "optimiser = 'lion' is none of 'adam', 'sgd'"),
        ("width", 2.5, "width = 2.5 is a float: give it as int"),
        ("order", [1, "a"], "order = 'a' is a str: give it as int"),
        ("order", 3, r"order = 3 is a int: give it as tuple\[int, ...\]"),
        ("scale", 1.5, "scale = 1.5 is a float: give it as str"),
    ],
)
def test_wrong_values_are_named_with_what_is_wanted(name: str, value: Any, told: str) -> None:
    with pytest.raises(SteradError, match=f"^{told}$"):
        build(Options, {name: value})


def test_an_unknown_field_meets_the_nearest() -> None:
    with pytest.raises(SteradError, match="unknown field 'veiws' in Options: did you mean 'views'"):
        build(Options, {"veiws": 1})
    with pytest.raises(SteradError, match="unknown field 'shared'"):
        build(Options, {"shared": 1})


def test_the_error_of_an_unknown_name_lists_the_known() -> None:
    near = unknown("memry", ["width", "memory"], "a run")
    assert str(near) == (
        "unknown field 'memry' in a run: did you mean 'memory'? known are memory, width"
    )
    assert str(unknown("zzz", ["memory"], "a run")).endswith("in a run: known are memory")


def test_names_are_those_of_the_fields() -> None:
    assert names_of(Options)[:3] == ["views", "lr", "head"]
    assert "shared" not in names_of(Options)
