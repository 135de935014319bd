import dataclasses
from collections.abc import Callable

import numpy as np

from sterad.report.figures.sphere import draw_spheres, has_appeared, project
from sterad.report.style import PALETTE
from sterad.results.record import RunRecord, SphereFrame

Build = Callable[..., RunRecord]


def test_axes_are_120_degrees_apart_in_front() -> None:
    flat, near = project(np.eye(3))
    assert near.all()
    np.testing.assert_allclose(np.linalg.norm(flat, axis=1), np.sqrt(2 / 3))
    np.testing.assert_allclose(flat.sum(axis=0), 0, atol=1e-12)
    assert flat[0, 0] < 0 < flat[1, 0]
    assert flat[2, 1] > 0


def test_projection_is_orthographic() -> None:
    flat, near = project(np.array([[1, 1, 1], [-1, -1, -1]]) / np.sqrt(3))
    np.testing.assert_allclose(flat, 0, atol=1e-12)
    assert near.tolist() == [True, False]


def test_spheres_have_names_and_points(make_record: Build) -> None:
    record = make_record()
    figure = draw_spheres(record)
    assert [axes.get_title() for axes in figure.axes] == [
        "after 280 images",
        "after 840 images",
        "after 1,400 images",
    ]
    assert record.sphere is not None
    names = {record.stream.class_names[c] for c in record.sphere.classes}
    counts = []
    for axes in figure.axes:
        assert {text.get_text() for text in axes.texts} == names
        points = [line for line in axes.lines if line.get_marker() == "o"]
        counts.append(sum(np.size(line.get_xdata()) for line in points))
        far, near = points[:2]
        assert (far.get_alpha() or 0) < (near.get_alpha() or 0)
    assert counts == [60, 120, 180]


def test_a_square_is_hollow_before_its_class_appears(make_record: Build) -> None:
    record = make_record()
    faces = [
        [line.get_markerfacecolor() for line in axes.lines if line.get_marker() == "s"]
        for axes in draw_spheres(record).axes
    ]
    first, second, third = PALETTE[:3]
    assert faces == [[first, "none", "none"], [first, second, "none"], [first, second, third]]


def test_a_class_appears_with_its_task(make_record: Build) -> None:
    record = make_record()
    label = record.stream.tasks[1][0]
    before, after = SphereFrame(28, (), ()), SphereFrame(42, (), ())
    assert not has_appeared(record, before, label)
    assert has_appeared(record, after, label)


def test_a_frame_without_points_or_moment(make_record: Build) -> None:
    record = make_record()
    assert record.sphere is not None
    sphere = dataclasses.replace(record.sphere, frames=(SphereFrame(17, (), ()),))
    figure = draw_spheres(dataclasses.replace(record, sphere=sphere))
    assert [axes.get_title() for axes in figure.axes] == ["after step 17"]
