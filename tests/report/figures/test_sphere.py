import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from sterad.errors import SteradError
from sterad.report.figures.sphere import draw, has_arrived, project
from sterad.report.style import PALETTE
from sterad.results.record import RunRecord, SphereFrame

Build = Callable[..., RunRecord]


def test_axes_stand_120_degrees_apart_on_the_near_side() -> None:
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


def test_three_spheres_with_names_and_clouds(make_record: Build) -> None:
    record = make_record()
    figure = draw(record)
    assert [axes.get_title() for axes in figure.axes] == [
        "after 280 images",
        "after 840 images",
        "after 1,400 images",
    ]
    assert record.sphere is not None
    names = {record.stream.class_names[c] for c in record.sphere.classes}
    drawn = []
    for axes in figure.axes:
        assert {text.get_text() for text in axes.texts} == names
        clouds = [line for line in axes.lines if line.get_marker() == "o"]
        drawn.append(sum(np.size(cloud.get_xdata()) for cloud in clouds))
        far, near = clouds[:2]
        assert (far.get_alpha() or 0) < (near.get_alpha() or 0)
    assert drawn == [60, 120, 180]


def test_a_square_is_hollow_until_its_class_arrives(make_record: Build) -> None:
    record = make_record()
    faces = [
        [line.get_markerfacecolor() for line in axes.lines if line.get_marker() == "s"]
        for axes in draw(record).axes
    ]
    first, second, third = PALETTE[:3]
    assert faces == [[first, "none", "none"], [first, second, "none"], [first, second, third]]


def test_arrival_follows_the_stream(make_record: Build) -> None:
    record = make_record()
    label = record.stream.tasks[1][0]
    before, after = SphereFrame(28, (), ()), SphereFrame(42, (), ())
    assert not has_arrived(record, before, label)
    assert has_arrived(record, after, label)


def test_a_frame_without_points_or_moment(make_record: Build) -> None:
    record = make_record()
    assert record.sphere is not None
    picture = dataclasses.replace(record.sphere, frames=(SphereFrame(17, (), ()),))
    figure = draw(dataclasses.replace(record, sphere=picture))
    assert [axes.get_title() for axes in figure.axes] == ["after step 17"]


def test_no_sphere_to_draw(make_record: Build) -> None:
    with pytest.raises(SteradError, match="no directions"):
        draw(make_record("finetune"))
