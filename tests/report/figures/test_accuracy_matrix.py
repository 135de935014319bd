import dataclasses
from collections.abc import Callable

from sterad.report.figures.accuracy_matrix import draw, row_moments

from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def test_numbers_stand_in_their_cells(make_record: Build) -> None:
    record = make_record()
    axes = draw(record).axes[0]
    written = {
        (int(text.get_position()[1]), int(text.get_position()[0])): text.get_text()
        for text in axes.texts
    }
    wanted = {
        (row, column): f"{100 * cell:.1f}"
        for row, cells in enumerate(record.accuracy_matrix)
        for column, cell in enumerate(cells)
        if cell is not None
    }
    assert written == wanted
    assert len(wanted) == 15  # a triangle: tasks to come are blank
    assert [t.get_text() for t in axes.get_yticklabels()] == ["280", "560", "840", "1,120", "1,400"]
    assert [t.get_text() for t in axes.get_xticklabels()] == [f"task {k}" for k in range(1, 6)]


def test_without_announced_ends_every_moment_is_a_row(make_record: Build) -> None:
    record = make_record(stream="blurry")
    assert row_moments(record) == record.moments
    assert len(draw(record).axes[0].get_yticklabels()) == 10


def test_rows_that_no_moment_explains_are_numbered(make_record: Build) -> None:
    record = make_record()
    record = dataclasses.replace(record, accuracy_matrix=record.accuracy_matrix[:3])
    axes = draw(record).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1", "2", "3"]


def test_a_large_matrix_has_a_scale_instead_of_numbers(make_record: Build) -> None:
    record = dataclasses.replace(
        make_record(),
        evaluations=tuple(f"task {k}" for k in range(100)),
        accuracy_matrix=((0.5,) * 99 + (None,),) * 100,
    )
    figure = draw(record)
    assert len(figure.axes) == 2
    assert not figure.axes[0].texts
    assert figure.axes[1].get_ylabel() == "accuracy (%)"


def test_an_empty_row_is_drawn(make_record: Build) -> None:
    record = dataclasses.replace(make_record(), accuracy_matrix=((None,) * 5,))
    assert not draw(record).axes[0].texts
