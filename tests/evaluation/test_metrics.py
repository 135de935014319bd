import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterad.evaluation import metrics

A: list[list[float | None]] = [[0.9, None, None], [0.7, 0.8, None], [0.6, 0.9, 0.5]]

accuracies = st.floats(0, 1)


@st.composite
def triangles(draw: st.DrawFn) -> list[list[float | None]]:
    size = draw(st.integers(2, 6))
    return [[draw(accuracies) if p <= q else None for p in range(size)] for q in range(size)]


def test_worked_example() -> None:
    assert metrics.final_average_accuracy(A) == pytest.approx((0.6 + 0.9 + 0.5) / 3)
    assert metrics.average_forgetting(A) == pytest.approx(((0.9 - 0.6) + (0.8 - 0.9)) / 2)
    assert metrics.average_forgetting_released(A) == pytest.approx((0.9 - 0.6) / 2)
    assert metrics.backward_transfer(A) == pytest.approx(((0.6 - 0.9) + (0.9 - 0.8)) / 2)


def test_one_row_has_no_forgetting() -> None:
    assert metrics.average_forgetting([[0.5]]) is None
    assert metrics.average_forgetting_released([[0.5]]) is None
    assert metrics.backward_transfer([[0.5]]) is None


@given(triangles())
def test_both_definitions_of_forgetting(matrix: list[list[float | None]]) -> None:
    last = len(matrix) - 1

    def cell(q: int, p: int) -> float:
        return matrix[q][p] or 0.0

    usual = [max(cell(q, p) for q in range(p, last)) - cell(last, p) for p in range(last)]
    released = [max(cell(q, p) for q in range(p, last + 1)) - cell(last, p) for p in range(last)]
    assert metrics.average_forgetting(matrix) == pytest.approx(sum(usual) / last)
    assert metrics.average_forgetting_released(matrix) == pytest.approx(sum(released) / last)
    assert (metrics.average_forgetting_released(matrix) or 0) >= 0


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 20))
def test_evaluation_steps_complete_each_part_of_the_stream(sizes: list[int], points: int) -> None:
    samples = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    steps = metrics.evaluation_steps(samples, points)
    assert steps == sorted(set(steps))
    assert steps[-1] == len(sizes)
    assert len(steps) <= points
    for k in range(1, points + 1):
        # The first step that completes part k must be included.
        due = next(s for s, n in enumerate(samples, 1) if n * points >= samples[-1] * k - 1e-6)
        assert due in steps
