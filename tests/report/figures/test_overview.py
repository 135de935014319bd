"""The figure of the README can be drawn again from committed records and a run of the demo."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.make_figures import COLORS, ROOT, choose, draw_overview, find_spheres
from sterad.errors import SteradError
from sterad.results.record import RunRecord
from sterad.results.run_directory import read_records

Build = Callable[..., RunRecord]


def test_curves_are_of_committed_records_and_features_of_the_same_run(make_record: Build) -> None:
    records = read_records(Path(ROOT / "reproduction" / "records" / "digits"))[0]
    drawn = next(r for r in choose(records) if r.config["method"]["name"] == "agd-fd")
    # The committed record is compact; the run itself has names of classes and features.
    stream = dataclasses.replace(drawn.stream, class_names=tuple("0123456789"))
    run = dataclasses.replace(drawn, stream=stream, sphere=make_record(sphere=True).sphere)
    other = dataclasses.replace(run, id="another-run")
    assert find_spheres(records, [other, run]) is run
    with pytest.raises(SteradError, match="run `make demo` first"):
        find_spheres(records, [other, drawn])
    *_, curves = draw_overview(records, run).axes
    assert [line.get_label() for line in curves.lines] == list(COLORS)
