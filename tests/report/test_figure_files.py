from pathlib import Path

import pytest
from sterad.report.figure_files import slug, write_figures

from sterad.errors import SteradError


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("a/b: ../c", "a-b-c"), ("漢字", "figure"), ("x" * 90, "x" * 60), ("Er, seed 0", "er-seed-0")],
)
def test_names_of_files_are_tame(name: str, wanted: str) -> None:
    assert slug(name) == wanted


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(SteradError, match="cannot make the folder"):
        write_figures([], tmp_path / "taken")
