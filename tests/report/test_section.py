import dataclasses
from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from sterad.report.page import build_sections
from sterad.report.section import (
    LARGE_REPORT_RUNS,
    MAX_FIGURES,
    MAX_FIGURES_LARGE,
    ReportFigure,
    Section,
    choose_runs,
)
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def test_few_runs_are_all_drawn(make_record: Build) -> None:
    runs, notes = choose_runs(lay_out(make_record(seed=seed) for seed in range(12)))
    assert (len(runs), notes) == (12, ())
    assert [run.is_first_seed for run in runs] == [True] + [False] * 11


def test_only_first_seeds_of_many_runs_are_drawn(make_record: Build) -> None:
    records = [make_record(m, seed=seed) for m in ("agd-fd", "finetune") for seed in range(3, 10)]
    runs, notes = choose_runs(lay_out(records))
    assert [run.name for run in runs] == [
        "agd-fd, digits, clear, seed 3",
        "finetune, digits, clear, seed 3",
    ]
    assert notes == ("Of 14 runs, the first seed of each of the 2 groups is drawn.",)


def test_the_number_of_figures_is_limited() -> None:
    figures = (ReportFigure(Figure, "", ""),) * (MAX_FIGURES + 2)
    section = Section("key", "title", "text", figures, ("a note",))
    limited = section.limit_figures(runs=1)
    assert len(limited.figures) == MAX_FIGURES
    assert limited.notes[0] == "a note"
    assert limited.notes[1].startswith(f"The first {MAX_FIGURES} figures are drawn, 2 more are")
    large = section.limit_figures(LARGE_REPORT_RUNS + 1)
    assert len(large.figures) == MAX_FIGURES_LARGE
    assert limited.limit_figures(runs=1) == limited


def by_key(records: Sequence[RunRecord]) -> dict[str, Section]:
    return {section.key: section for section in build_sections(lay_out(records))}


def names(section: Section) -> list[str]:
    return [figure.name for figure in section.figures]


def test_two_methods_on_two_streams(make_record: Build) -> None:
    sections = by_key(
        [make_record(m, s) for m in ("agd-fd", "finetune") for s in ("clear", "blurry")]
    )
    assert names(sections["time"]) == ["clear", "blurry"]
    assert names(sections["forgetting"]) == ["clear", "blurry"]
    assert names(sections["stream"]) == [
        "digits, clear, tasks 5, seed 0",
        "digits, blurry, tasks 5, scale 60, seed 0",
    ]
    assert "are announced" in sections["stream"].figures[0].caption
    assert "are not announced" in sections["stream"].figures[1].caption
    assert len(sections["matrix"].figures) == 4
    assert len(sections["memory"].figures) == 2
    assert sections["memory"].notes == ("finetune has no memory.",)
    assert len(sections["sphere"].figures) == 2
    assert sections["sphere"].notes == ("finetune has no fixed directions.",)


def test_captions_contain_the_results(make_record: Build) -> None:
    record = make_record()
    sections = by_key([record])
    assert sections["seconds"].figures[0].caption == ""
    end = f"{100 * record.final_average_accuracy:.2f}"
    assert sections["time"].figures[0].caption == f"Final average accuracy: agd-fd {end} %."
    assert sections["memory"].figures[0].caption == "At the end 200 images of 10 classes."


def test_a_method_without_memory_and_sphere(make_record: Build) -> None:
    sections = by_key([make_record("finetune")])
    assert sections["memory"].figures == sections["sphere"].figures == ()
    assert len(sections["matrix"].figures) == 1


def test_equal_streams_are_drawn_once(make_record: Build) -> None:
    records = [make_record(method, memory=m) for method in ("agd-fd", "er") for m in (200, 500)]
    assert len(by_key(records)["stream"].figures) == 1


def test_no_forgetting_with_one_evaluation(make_record: Build) -> None:
    record = make_record()
    once = dataclasses.replace(record, accuracy_matrix=record.accuracy_matrix[-1:])
    assert by_key([once])["forgetting"].notes == ("digits, clear: no task was evaluated twice.",)


def test_a_stream_whose_tasks_share_classes_is_not_drawn(make_record: Build) -> None:
    record = make_record()
    stream = dataclasses.replace(record.stream, name="domain", tasks=(tuple(range(10)),) * 2)
    sections = by_key([dataclasses.replace(record, stream=stream)])
    assert sections["stream"].notes == ("Not drawn: the tasks of the domain stream share classes.",)


def test_captions_of_cost_and_time(make_record: Build) -> None:
    cheap = dataclasses.replace(make_record("finetune"), final_average_accuracy=0.2)
    expensive = dataclasses.replace(make_record("agd-fd"), final_average_accuracy=0.9)
    dominated = dataclasses.replace(make_record("er"), final_average_accuracy=0.8)
    sections = by_key([cheap, expensive, dominated])
    assert names(sections["cost"]) == [
        "digits, clear: pixels through the network per batch",
        "digits, clear: seconds per run",
    ]
    caption = "Pareto front, from cheap to expensive: finetune, agd-fd."
    assert [figure.caption for figure in sections["cost"].figures] == [caption, caption]
    assert sections["seconds"].figures[0].caption == "agd-fd takes 4.3 times as long as finetune."


def test_notes_about_missing_fields_of_older_records(make_record: Build) -> None:
    records = [
        dataclasses.replace(make_record(m), images_per_step=0.0, cost=None, confusion=(), losses=())
        for m in ("agd-fd", "er")
    ]
    sections = by_key(records)
    assert names(sections["cost"]) == ["digits, clear: seconds per run"]
    assert sections["confusion"].notes == ("No record has a confusion matrix.",)
    assert sections["loss"].notes == ("No record has losses by class at 5 or more steps.",)


def test_confusion_caption_counts_errors_of_the_last_task(make_record: Build) -> None:
    (figure,) = by_key([make_record("finetune")])["confusion"].figures
    assert figure.caption == "100.00 % of the errors on earlier tasks are classes of the last task."


def test_sweep_caption_names_the_best_value(make_record: Build) -> None:
    records = [
        dataclasses.replace(make_record(variance=v), final_average_accuracy=a)
        for v, a in ((0.5, 0.6), (2.0, 0.9), (8.0, 0.7))
    ]
    (figure,) = by_key(records)["sweep"].figures
    assert figure.name == "concentration κ² = 1 / variance: all runs"
    assert figure.caption == "Highest: agd-fd at 0.5 (90.00 %)."
