import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.files import content_hash
from sterad.results.record import (
    METRICS,
    SCHEMA,
    RunRecord,
    SphereFrame,
    SpherePicture,
    TrainingCost,
)


@pytest.fixture
def record(small_record: Callable[..., RunRecord]) -> RunRecord:
    frame = SphereFrame(2, (0, 1, 1), ((1.0, 0.0, 0.0), (0.6, 0.8, 0.0), (1 / 3, 2 / 3, 2 / 3)))
    return dataclasses.replace(
        small_record({"method": {"name": "agd-fd", "variance": 2.0}, "label_order": [1, 0]}),
        sphere=SpherePicture((0, 1, 1), (frame, frame)),
        backward_transfer=None,
        seconds=0.1 + 0.2,
        provenance={"git_commit": None, "cores": 2},
        confusion=((5, 0), (2, 3)),
        losses=((1, 0.5, 0.25), (2, 1e-7, 3.0)),
        cost=TrainingCost(4096 / 3, 4096, 1.5e16, 70_000),
    )


def test_json_round_trip(record: RunRecord) -> None:
    back = RunRecord.from_json(record.to_json())
    assert back == record
    assert back.to_json() == record.to_json()
    assert back.metrics() == record.metrics()
    assert back.moments[0].cells == (0.5, None)
    assert back == RunRecord.from_json(record.to_json().encode())


def test_the_json_has_one_moment_per_line(record: RunRecord) -> None:
    names = ('{"a": [', "]\n }", 'b\\" ], {\n\n')  # no line breaks where strings have brackets
    record = dataclasses.replace(record, changes=names, evaluations=("{", "}"))
    lines = record.to_json().splitlines()
    assert sum('"samples": ' in line and line.endswith(("},", "}")) for line in lines) == 2
    assert json.loads(record.to_json())["changes"] == list(names)
    assert RunRecord.from_json(record.to_json()) == record


def test_json_round_trip_without_sphere(small_record: Callable[..., RunRecord]) -> None:
    assert RunRecord.from_json(small_record({}).to_json()) == small_record({})


@pytest.mark.parametrize("number", [0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0])
def test_floats_are_exact(record: RunRecord, number: float) -> None:
    back = RunRecord.from_json(dataclasses.replace(record, backward_transfer=number).to_json())
    assert back.backward_transfer is not None
    assert back.backward_transfer.hex() == number.hex()


def test_the_json_has_the_documented_fields(record: RunRecord) -> None:
    raw = json.loads(record.to_json())
    assert raw["schema"] == SCHEMA
    documented = {"config", "accuracy_matrix", "final_average_accuracy", "average_forgetting"}
    documented |= {"anytime_accuracy", "seconds", "images_per_second", "peak_memory_bytes"}
    assert documented | {"execution", "provenance", *METRICS} <= set(raw)
    assert raw["accuracy_matrix"][0] == [0.5, None]


def test_metrics_do_not_include_costs(record: RunRecord) -> None:
    slower = dataclasses.replace(record, seconds=99.0, peak_memory_bytes=1, provenance={})
    assert slower.metrics() == record.metrics()
    other = dataclasses.replace(record, final_average_accuracy=math.nextafter(0.5, 1))
    assert other.metrics() != record.metrics()


def test_nan_is_never_written(record: RunRecord) -> None:
    with pytest.raises(ValueError, match="JSON"):
        dataclasses.replace(record, anytime_accuracy=math.nan).to_json()


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "{}", '"schema"', b"\xff\xff"])
def test_invalid_json_raises_an_error(text: str | bytes) -> None:
    with pytest.raises(SteradError, match=r"runs/a/record\.json is damaged .*: delete it and run"):
        RunRecord.from_json(text, "runs/a/record.json")


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_a_truncated_record_is_damaged(record: RunRecord, fraction: float) -> None:
    text = record.to_json()
    with pytest.raises(SteradError, match="the record is damaged"):
        RunRecord.from_json(text[: int(fraction * len(text))])


@pytest.mark.parametrize("schema", [SCHEMA + 1, SCHEMA - 1, "1", None])
def test_another_schema_raises_an_error(record: RunRecord, schema: Any) -> None:
    raw = json.loads(record.to_json()) | {"schema": schema}
    with pytest.raises(SteradError) as caught:
        RunRecord.from_json(json.dumps(raw))
    assert f"has schema {schema!r} and this sterad reads {SCHEMA}" in str(caught.value)
    assert "use the version that wrote it; the record is not changed" in str(caught.value)


def changed(record: RunRecord, *missing: str, **values: Any) -> str:
    """Return the text of a record with other values and a correct hash."""
    raw = json.loads(record.to_json()) | values
    raw = {name: value for name, value in raw.items() if name not in (*missing, "sha256")}
    return json.dumps(raw | {"sha256": content_hash(raw)})


def test_every_changed_value_is_noticed(record: RunRecord) -> None:
    whole = json.loads(record.to_json())
    for name, value in whole.items():
        other = {"sha256": "0" * 64, "schema": SCHEMA}.get(name, [value])
        if other != value:
            with pytest.raises(SteradError, match="does not match its SHA-256"):
                RunRecord.from_json(json.dumps(whole | {name: other}))
    assert RunRecord.from_json(json.dumps(whole)) == record, "the layout of the file is free"


@pytest.mark.parametrize("name", ["moments", "config", "sphere", "stream", "anytime_accuracy"])
def test_a_missing_field_is_named(record: RunRecord, name: str) -> None:
    with pytest.raises(SteradError, match=f"the record is damaged .*{name}.*: delete"):
        RunRecord.from_json(changed(record, name))


@pytest.mark.parametrize(
    "values",
    [
        {"moments": 3},
        {"moments": [{"step": 1}]},
        {"stream": None},
        {"stream": {"name": "clear"}},
        {"sphere": {"classes": [0, 1, 2]}},
        {"sphere": [1]},
    ],
)
def test_a_field_with_the_wrong_structure_raises_an_error(
    record: RunRecord, values: dict[str, Any]
) -> None:
    with pytest.raises(SteradError, match=r"the record is damaged .*: delete it"):
        RunRecord.from_json(changed(record, **values))


def test_unknown_fields_are_rejected(record: RunRecord) -> None:
    with pytest.raises(SteradError) as caught:
        RunRecord.from_json(changed(record, color="red", age=3), "a/record.json")
    assert str(caught.value) == (
        "a/record.json has unknown fields (age, color), so a newer sterad wrote it: "
        "use that version; the record is not changed"
    )


@pytest.mark.parametrize("name", ["images_per_step", "confusion", "losses", "cost"])
def test_older_records_without_optional_fields_are_read(record: RunRecord, name: str) -> None:
    default: Any = {"images_per_step": 0.0, "cost": None}.get(name, ())
    back = RunRecord.from_json(changed(record, name))
    assert back == dataclasses.replace(record, **{name: default})


def test_rows_of_numbers_are_one_line_and_texts_are_unchanged(record: RunRecord) -> None:
    text = dataclasses.replace(record, provenance={"note": "[ 1,  2 ] \n[\n3]"}).to_json()
    assert "[2, 3]" in text
    assert RunRecord.from_json(text).provenance == {"note": "[ 1,  2 ] \n[\n3]"}


def test_costs_are_per_stream_batch_and_zero_if_they_were_not_counted(record: RunRecord) -> None:
    assert record.pixels_per_batch == 4096 / 3 / record.stream.steps
    assert record.multiply_adds_per_batch == 1.5e16 / record.stream.steps
    older = dataclasses.replace(record, cost=None)
    assert older.pixels_per_batch == older.multiply_adds_per_batch == older.state_bytes == 0


def test_a_damaged_cost_is_noticed(record: RunRecord) -> None:
    values = dataclasses.asdict(record)["cost"] | {"forward_pixels": "many"}
    with pytest.raises(SteradError, match=r"cost is .* which has a wrong type"):
        RunRecord.from_json(changed(record, cost=values))


def test_images_per_batch_include_consolidations(record: RunRecord) -> None:
    late = dataclasses.replace(record, images_per_step=0.0, consolidation_images=600)
    assert late.images_per_batch == 600 / record.stream.steps
