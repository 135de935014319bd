import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from sterad.errors import SteradError
from sterad.validation import (
    BelowOne,
    Count,
    Positive,
    Range,
    Seed,
    Views,
    build,
    check_fields,
    check_value,
    describe,
    field_names,
    parse_value,
    resolve_field_name,
    unknown_field,
)


@dataclass(frozen=True)
class Options:
    views: Views = 5
    lr: Positive = 0.1
    head: str = "mlp"
    flip: bool = False
    optimizer: Literal["adam", "sgd"] = "adam"
    width: int | None = None
    order: tuple[int, ...] | None = None
    scale: int | str = 1
    share: BelowOne = 0.5
    free: float = 0.0
    channels: Literal[1, 3] = 3
    seeds: tuple[Seed, ...] = ()
    file: Path | None = None
    shared: ClassVar[int] = 3


def test_valid_values_are_kept() -> None:
    values = {"views": 1, "lr": 0.5, "head": "none", "flip": True, "optimizer": "sgd", "width": 3}
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
def test_values_are_converted_to_the_type_of_their_field(
    value: Any, hint: Any, expected: Any
) -> None:
    value = check_value("x", value, hint)
    assert value == expected
    # A numpy scalar would be equal too, but JSON and checkpoints do not accept it.
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("views", 1.5, "views 1.5 is of type float: give an integer from 0 to 1,000"),
        ("views", True, "views True is of type bool: give an integer from 0 to 1,000"),
        ("views", "2", "views '2' is of type str: give an integer from 0 to 1,000"),
        ("views", None, "views None is of type NoneType: give an integer from 0 to 1,000"),
        ("views", -1, "views -1 is out of range: give an integer from 0 to 1,000"),
        ("views", 1001, "views 1001 is out of range: give an integer from 0 to 1,000"),
        ("views", np.int64(-1), "views -1 is out of range: give an integer from 0 to 1,000"),
        ("lr", "fast", "lr 'fast' is of type str: give a number in (0, 1e+06]"),
        ("lr", False, "lr False is of type bool: give a number in (0, 1e+06]"),
        ("lr", 0, "lr 0.0 is out of range: give a number in (0, 1e+06]"),
        ("lr", math.nan, "lr nan is out of range: give a number in (0, 1e+06]"),
        ("lr", 1e30, "lr 1e+30 is out of range: give a number in (0, 1e+06]"),
        pytest.param(
            "lr", 10**400, "lr inf is out of range: give a number in (0, 1e+06]", id="huge"
        ),
        ("share", 1.0, "share 1.0 is out of range: give a number in [0, 1)"),
        ("share", -0.5, "share -0.5 is out of range: give a number in [0, 1)"),
        ("free", math.inf, "free inf is out of range: give a finite number"),
        ("free", math.nan, "free nan is out of range: give a finite number"),
        ("width", 2**63, "width 9223372036854775808 is out of range: give an integer"),
        ("width", -(2**99), "width with 100 bits is out of range: give an integer"),
        ("flip", 1, "flip 1 is of type int: give true or false"),
        ("head", ["mlp"], "head ['mlp'] is of type list: give text"),
        ("optimizer", "lion", "optimizer 'lion' is unknown: choose adam or sgd"),
        ("optimizer", None, "optimizer None is unknown: choose adam or sgd"),
        ("channels", 2, "channels 2 is unknown: choose 1 or 3"),
        ("width", 2.5, "width 2.5 is of type float: give an integer"),
        ("order", [1, "a"], "order 'a' is of type str: give an integer"),
        ("order", 3, "order 3 is of type int: give a list, each item an integer"),
        ("seeds", [0, -1], "seeds -1 is out of range: give an integer from 0 to 4,294,967,295"),
        ("scale", 1.5, "scale 1.5 is of type float: give text"),
        ("file", 3, "file 3 is of type int: give a path"),
    ],
)
def test_invalid_values_are_refused_with_the_valid_ones(
    name: str, value: Any, message: str
) -> None:
    with pytest.raises(SteradError) as caught:
        build(Options, {name: value})
    assert str(caught.value) == message
    with pytest.raises(SteradError) as caught:
        check_fields(replace(Options(), **{name: value}))
    assert str(caught.value) == message


def test_the_ends_of_a_range_are_valid() -> None:
    ends = {"views": 1000, "lr": 1e6, "share": 0, "seeds": (0, 2**32 - 1), "width": 2**63 - 1}
    built = build(Options, ends)
    assert vars(built) == vars(Options()) | ends
    check_fields(built)


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "shown"),
    [
        (Range(0, 1), (0, 0.5, 1), (-0.1, 1.1), "[0, 1]"),
        (Range(0, 1, open_low=True), (1e-300, 1), (0, -0.0, 1.1), "(0, 1]"),
        (Range(0, 1, open_high=True), (0, 0.999), (1, 1.0000001), "[0, 1)"),
        (Range(0.5, 2, True, True), (0.6, 1), (0.5, 2), "(0.5, 2)"),
        (Range(-5, 1e6), (-5, 10**6), (-6, 10**6 + 1), "[-5, 1e+06]"),
    ],
)
def test_a_range_contains_the_numbers_between_its_ends(
    limits: Range, inside: tuple[float, ...], outside: tuple[float, ...], shown: str
) -> None:
    assert [value in limits for value in inside] == [True] * len(inside)
    assert [value in limits for value in (*outside, math.nan, math.inf, -math.inf)] == [False] * (
        len(outside) + 3
    )
    assert str(limits) == shown


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Count, "an integer from 1 to 1,000,000"),
        (Seed, "an integer from 0 to 4,294,967,295"),
        (int, "an integer"),
        (Positive, "a number in (0, 1e+06]"),
        (BelowOne, "a number in [0, 1)"),
        (float, "a finite number"),
        (Count | None, "an integer from 1 to 1,000,000 or none"),
        (Literal["adam", "sgd", "lamb"], "adam, sgd or lamb"),
        (Literal["adam"], "adam"),
        (tuple[Seed, ...], "a list, each item an integer from 0 to 4,294,967,295"),
        (bool, "true or false"),
        (str, "text"),
        (Path, "a path"),
        (dict, "dict"),
    ],
)
def test_the_values_of_a_field_are_described_in_words(hint: Any, words: str) -> None:
    assert describe(hint) == words


@pytest.mark.parametrize(
    ("texts", "hint", "expected"),
    [
        (["3"], Count, 3),
        (["1e-3"], Positive, 0.001),
        (["2"], float, 2.0),
        (["1", "2"], int, 2),  # the last one counts
        (["none"], Count | None, None),
        (["None"], float | None, None),
        (["7"], Count | None, 7),
        (["none"], str, "none"),
        (["True"], bool, True),
        (["false"], bool | None, False),
        (["3"], Literal[1, 3], 3),
        (["sgd"], Literal["adam", "sgd"], "sgd"),
        (["4", "2"], tuple[Seed, ...], (4, 2)),
        (["a", "b"], tuple[Path, ...], (Path("a"), Path("b"))),
        ([], tuple[int, ...], ()),
        (["3"], str, "3"),
        (["natural"], tuple[int, ...] | Literal["natural"] | None, "natural"),
        (["2", "1"], tuple[int, ...] | Literal["natural"] | None, (2, 1)),
        (["there"], Path, Path("there")),
    ],
)
def test_arguments_are_parsed(texts: list[str], hint: Any, expected: Any) -> None:
    value = parse_value("x", texts, hint)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "hint", "message"),
    [
        ("0", Count, "--x 0 is out of range: give an integer from 1 to 1,000,000"),
        ("1.5", Count, "--x '1.5' cannot be parsed: give an integer from 1 to 1,000,000"),
        ("many", Count, "--x 'many' cannot be parsed: give an integer from 1 to 1,000,000"),
        ("none", Count, "--x 'none' cannot be parsed: give an integer from 1 to 1,000,000"),
        ("nan", Positive, "--x nan is out of range: give a number in (0, 1e+06]"),
        ("1", BelowOne, "--x 1.0 is out of range: give a number in [0, 1)"),
        ("", Count, "--x is empty: give an integer from 1 to 1,000,000"),
        ("", str, "--x is empty: give text"),
        ("yes", bool, "--x 'yes' cannot be parsed: give true or false"),
        ("Adam", Literal["adam", "sgd"], "--x 'Adam' is unknown: choose adam or sgd"),
        ("-1", tuple[Seed, ...], "--x -1 is out of range: give an integer from 0 to 4,294,967,295"),
    ],
)
def test_arguments_that_cannot_be_parsed_are_refused(text: str, hint: Any, message: str) -> None:
    with pytest.raises(SteradError) as caught:
        parse_value("--x", [text], hint)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("memory-batch", "memory_batch"),
        ("mem-size", "memory"),
        ("buffer_size", "memory"),
        ("num_tasks", "tasks"),
        ("optimizer", "optimizer"),
        ("write", "save_tuned"),
        ("lr", "lr"),
    ],
)
def test_aliases_of_fields_are_resolved(name: str, expected: str) -> None:
    assert resolve_field_name(name) == expected


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SteradError, match="unknown field 'veiws' in Options: did you mean 'views'"):
        build(Options, {"veiws": 1})
    with pytest.raises(SteradError, match="unknown field 'shared'"):
        build(Options, {"shared": 1})


def test_the_error_of_an_unknown_field_lists_the_known_ones() -> None:
    near = unknown_field("memry", ["width", "memory"], "a run")
    assert str(near) == (
        "unknown field 'memry' in a run: did you mean 'memory'? known are memory, width"
    )
    assert str(unknown_field("zzz", ["memory"], "a run")).endswith("in a run: known are memory")


def test_field_names_exclude_class_variables() -> None:
    assert field_names(Options)[:3] == ["views", "lr", "head"]
    assert "shared" not in field_names(Options)
