from collections.abc import Callable
from typing import Any

from sterad.results.grouping import Label, find_varying, flatten, lay_out
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def config(method: str = "agd-fd", stream: str = "clear", **other: Any) -> dict[str, Any]:
    fields = other.pop("fields", {})
    scale = {"scale": 150} if stream == "blurry" else {}
    return {
        "method": {"name": method, **fields},
        "dataset": {"name": "digits"},
        "stream": {"name": stream, "tasks": 5, **scale},
        "memory": 200,
        "seed": 0,
        **other,
    }


def texts(labels: tuple[Label, ...]) -> list[str]:
    return [label.text for label in labels]


def test_methods_are_rows_and_streams_are_columns(small_record: Build) -> None:
    records = [
        small_record(
            config(method, stream, seed=seed), f"{method}{stream}{seed}", stream == "clear"
        )
        for method in ("finetune", "agd-fd")
        for stream in ("blurry", "clear")
        for seed in (10, 2)
    ]
    layout = lay_out(records)
    assert texts(layout.rows) == ["agd-fd", "finetune"]
    assert texts(layout.columns) == ["clear", "blurry"]  # announced boundaries come first
    assert [r.id for r in layout.cell(0, 1)] == ["agd-fdblurry2", "agd-fdblurry10"]
    assert layout.common == ("digits", "tasks 5", "memory 200")
    order = [(row.text, column.text) for row, column, _ in layout.groups()]
    assert order == [
        ("agd-fd", "clear"),
        ("finetune", "clear"),
        ("agd-fd", "blurry"),
        ("finetune", "blurry"),
    ]


def test_a_varying_method_field_is_part_of_the_row(small_record: Build) -> None:
    records = [
        small_record(config(fields={"variance": 10.0, "views": 5}), "a"),
        small_record(config(fields={"variance": 2.0, "views": 5}), "b"),
        small_record(config("finetune", fields={"lr": 0.1}), "c"),
    ]
    layout = lay_out(records)
    assert texts(layout.rows) == ["agd-fd, variance 2", "agd-fd, variance 10", "finetune"]
    assert texts(layout.columns) == ["digits, clear"]


def test_fields_of_different_methods_are_not_compared(small_record: Build) -> None:
    runs = [config(fields={"lr": 0.1}), config("finetune", fields={"lr": 0.2, "momentum": 0.9})]
    assert find_varying([flatten(run) for run in runs]) == ("method.name",)


def test_numbers_are_sorted_and_missing_cells_are_empty(small_record: Build) -> None:
    records = [
        small_record(config(method, memory=memory), f"{method}{memory}")
        for method, memory in (("agd-fd", 1000), ("agd-fd", 200), ("er", 200))
    ]
    layout = lay_out(records)
    assert texts(layout.columns) == ["memory 200", "memory 1000"]
    assert layout.cell(1, 1) == ()
    assert len(layout.cell(1, 0)) == 1


def test_a_setting_determined_by_the_method_is_part_of_the_row(small_record: Build) -> None:
    records = [
        small_record(config("er", memory=200), "a"),
        small_record(config("finetune", memory=None), "b"),
    ]
    layout = lay_out(records)
    assert texts(layout.rows) == ["er, memory 200", "finetune, memory none"]
    assert texts(layout.columns) == ["digits, clear"]


def test_a_row_leaves_out_what_most_rows_have(small_record: Build) -> None:
    records = [
        small_record(config("agd-fd", memory=200, fields={"variance": 1}), "a"),
        small_record(config("agd-fd", memory=200, fields={"variance": 2}), "b"),
        small_record(config("randumb", memory=None), "c"),
    ]
    assert texts(lay_out(records).rows) == [
        "agd-fd, variance 1",
        "agd-fd, variance 2",
        "randumb, memory none",
    ]


def test_scales_of_one_stream_are_columns(small_record: Build) -> None:
    records = [small_record(config(), "a")]
    for scale in (1500, 150):
        stream = {"name": "blurry", "tasks": 5, "scale": scale}
        records.append(small_record({**config(), "stream": stream}, f"{scale}", announced=False))
    assert texts(lay_out(records).columns) == ["clear", "blurry, scale 150", "blurry, scale 1500"]


def test_lists_and_integral_floats_are_compared_by_value(small_record: Build) -> None:
    runs = [config(order=[1, 2], fields={"lr": 1.0}), config(order=[1, 2], fields={"lr": 1})]
    layout = lay_out(small_record(run, f"{index}") for index, run in enumerate(runs))
    assert (len(layout.rows), len(layout.columns), len(layout.cell(0, 0))) == (1, 1, 2)


def test_an_unknown_config_is_laid_out(small_record: Build) -> None:
    layout = lay_out([small_record({"seed": 1}, "a"), small_record({"seed": 2}, "b")])
    assert texts(layout.rows) == ["all runs"]
    assert len(layout.cell(0, 0)) == 2


def test_no_records_give_an_empty_layout() -> None:
    assert lay_out([]).rows == ()
