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
    assert found["seconds"].drawings[0].caption == ""
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


def test_cost_names_the_front_and_time_the_ratio(make_record: Build) -> None:
    cheap = dataclasses.replace(make_record("finetune"), final_average_accuracy=0.2)
    dear = dataclasses.replace(make_record("agd-fd"), final_average_accuracy=0.9)
    beaten = dataclasses.replace(make_record("er"), final_average_accuracy=0.8)
    found = by_key([cheap, dear, beaten])
    assert names(found["cost"]) == [
        "digits, clear: seconds of a run",
        "digits, clear: images through the network per batch",
    ]
    said = "On the front, from cheap to dear: finetune, agd-fd."
    assert [drawing.caption for drawing in found["cost"].drawings] == [said, said]
    assert found["seconds"].drawings[0].caption == "agd-fd takes 4.3 times as long as finetune."


def test_records_without_costs_and_answers_say_so(make_record: Build) -> None:
    old = [
        dataclasses.replace(make_record(m), images_per_step=0.0, confusion=(), losses=())
        for m in ("agd-fd", "er")
    ]
    found = by_key(old)
    assert names(found["cost"]) == ["digits, clear: seconds of a run"]
    assert found["confusion"].notes == ("No record holds the answers of its last evaluation.",)
    assert found["loss"].notes == ("No record holds losses by class at five steps or more.",)


def test_forgetting_shows_in_the_confusion(make_record: Build) -> None:
    (drawing,) = by_key([make_record("finetune")])["confusion"].drawings
    assert drawing.caption == "Of the errors on earlier tasks, 100.00 % are classes of the last."


def test_a_sweep_says_where_it_is_highest(make_record: Build) -> None:
    swept = [
        dataclasses.replace(make_record(variance=v), final_average_accuracy=a)
        for v, a in ((0.5, 0.6), (2.0, 0.9), (8.0, 0.7))
    ]
    (drawing,) = by_key(swept)["sweep"].drawings
    assert drawing.name == "concentration κ² = 1 / variance: all runs"
    assert drawing.caption == "Highest: agd-fd at 0.5 (90.00 %)."
