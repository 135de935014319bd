import dataclasses
from collections.abc import Callable, Sequence

from sterad.report.drawing import Section
from sterad.report.sections import sections
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def by_key(records: Sequence[RunRecord]) -> dict[str, Section]:
    return {section.key: section for section in sections(lay_out(records))}


def names(section: Section) -> list[str]:
    return [drawing.name for drawing in section.drawings]


def test_two_methods_on_two_streams(make_record: Build) -> None:
    found = by_key([make_record(m, s) for m in ("agd-fd", "finetune") for s in ("clear", "blurry")])
    assert names(found["time"]) == ["clear", "blurry"]
    assert names(found["forgetting"]) == ["clear", "blurry"]
    assert names(found["stream"]) == [
        "digits, clear, tasks 5, seed 0",
        "digits, blurry, tasks 5, scale 60, seed 0",
    ]
    assert "are announced" in found["stream"].drawings[0].caption
    assert "are not announced" in found["stream"].drawings[1].caption
    assert len(found["matrix"].drawings) == 4
    assert len(found["memory"].drawings) == 2
    assert found["memory"].notes == ("finetune keeps no memory.",)
    assert len(found["sphere"].drawings) == 2
    assert found["sphere"].notes == ("finetune has no fixed directions to draw.",)


def test_captions_say_the_numbers(make_record: Build) -> None:
    record = make_record()
    found = by_key([record])
    end = f"{100 * record.moments[-1].accuracy:.2f}"
    assert found["time"].drawings[0].caption == f"At the end: agd-fd {end} %."
    assert found["memory"].drawings[0].caption == "At the end 200 images of 10 classes."


def test_one_method_without_memory_and_sphere(make_record: Build) -> None:
    found = by_key([make_record("finetune")])
    assert found["memory"].drawings == found["sphere"].drawings == ()
    assert len(found["matrix"].drawings) == 1


def test_the_stream_of_several_methods_is_drawn_once(make_record: Build) -> None:
    records = [make_record(method, memory=m) for method in ("agd-fd", "er") for m in (200, 500)]
    assert len(by_key(records)["stream"].drawings) == 1


def test_one_evaluation_leaves_nothing_to_forget(make_record: Build) -> None:
    record = make_record()
    once = dataclasses.replace(record, accuracy_matrix=record.accuracy_matrix[-1:])
    assert by_key([once])["forgetting"].notes == (
        "digits, clear: no task was evaluated twice, so none can be forgotten.",
    )


def test_tasks_with_shared_classes_are_said_not_drawn(make_record: Build) -> None:
    record = make_record()
    stream = dataclasses.replace(record.stream, name="domain", tasks=(tuple(range(10)),) * 2)
    found = by_key([dataclasses.replace(record, stream=stream)])
    assert found["stream"].notes == (
        "The classes of the domain stream do not tell its tasks apart.",
    )
