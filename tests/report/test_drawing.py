from collections.abc import Callable

from sterad.report.drawing import (
    MANY_RUNS,
    MOST_DRAWN,
    MOST_OF_MANY,
    Plan,
    Sketch,
    chosen,
    draw_section,
)

from sterad.report.figures import class_proportions
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def test_few_runs_are_all_drawn(make_record: Build) -> None:
    runs, notes = chosen(lay_out(make_record(seed=seed) for seed in range(12)))
    assert (len(runs), notes) == (12, ())
    assert [run.first for run in runs] == [True] + [False] * 11


def test_of_many_runs_the_first_seed_is_drawn(make_record: Build) -> None:
    records = [make_record(m, seed=seed) for m in ("agd-fd", "finetune") for seed in range(3, 10)]
    runs, notes = chosen(lay_out(records))
    assert [run.name for run in runs] == [
        "agd-fd, digits, clear, seed 3",
        "finetune, digits, clear, seed 3",
    ]
    assert notes == ("Of 14 runs, the first seed of each of the 2 groups is drawn.",)


def test_a_section_has_an_end(make_record: Build) -> None:
    stream = make_record().stream
    sketches = [Sketch(lambda: class_proportions.draw(stream), "", "")] * (MOST_DRAWN + 2)
    plan = Plan("key", "title", "text", sketches, ["a note"])
    section = draw_section(plan)
    assert len(section.drawings) == MOST_DRAWN
    assert section.notes[0] == "a note"
    assert section.notes[1].startswith(f"The first {MOST_DRAWN} are drawn, 2 more are left out")
    assert len(draw_section(plan, MANY_RUNS + 1).drawings) == MOST_OF_MANY


def test_further_seeds_stand_apart(make_record: Build) -> None:
    stream = make_record().stream
    sketches = [
        Sketch(lambda: class_proportions.draw(stream), f"{seed}", "", first=seed == 0)
        for seed in range(3)
    ]
    section = draw_section(Plan("key", "title", "text", sketches))
    assert [drawing.name for drawing in section.drawings] == ["0"]
    assert [drawing.name for drawing in section.further] == ["1", "2"]
