from hypothesis import given
from hypothesis import strategies as st

from sterad.report.sparkline import BLOCKS, curve_line, resample, sparkline

CURVES = st.lists(
    st.tuples(st.integers(1, 10**6), st.none() | st.floats(0, 1)), min_size=1, max_size=20
).map(lambda points: sorted(dict(points).items()))


@given(st.lists(st.floats(0, 1), min_size=2))
def test_higher_values_are_never_lower_blocks(values: list[float]) -> None:
    heights = [BLOCKS.index(block) for block in sparkline(sorted(values))]
    assert heights == sorted(heights)


def test_the_scale_is_fixed() -> None:
    assert sparkline([0, 1]) == "▁█"
    assert sparkline([0.9, 0.95]) == "██"
    assert sparkline([-1, 2]) == "▁█"


@given(CURVES, st.integers(1, 60), st.integers(0, 10**6))
def test_a_line_has_its_width_and_ends_with_the_last_value(
    curve: list[tuple[int, float | None]], width: int, more: int
) -> None:
    total = curve[-1][0] + more
    values = resample(curve, width, total)
    assert len(curve_line(curve, width, total)) == len(values) == width
    for part, value in enumerate(values, 1):
        place = total * part / width
        past = [found for position, found in curve if position <= place]
        is_after_the_end = place >= curve[-1][0] + total / width
        assert value == (past[-1] if past and not is_after_the_end else None)
    assert resample(curve, width)[-1] == curve[-1][1]


def test_the_line_of_an_unfinished_run_ends_at_its_last_evaluation() -> None:
    assert curve_line([(10, 0.5), (20, 1.0)], 8, 80) == "▅█      "


def test_no_evaluation_is_blank() -> None:
    assert curve_line([], 3) == "   "


def test_values_outside_of_the_range_get_the_nearest_block() -> None:
    assert sparkline([-1e308, 1e308]) == sparkline([0.0, 1.0])
