"""Metrics: pure functions of the accuracy matrix A.

A[q][p] is the accuracy on evaluation p at row q (after task q, if tasks have ends); cells of
evaluations that have not started are None. q is the last row in the formulas below, and only
evaluations with an earlier row count in those that compare rows.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

Matrix = Sequence[Sequence[float | None]]


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean, summed from left to right."""
    return sum(values) / len(values)


def final_average_accuracy(matrix: Matrix) -> float:
    """Return the mean of the last row: (1/K) Σ_p A[K-1][p].

    >>> round(final_average_accuracy([[0.9, None], [0.7, 0.8]]), 6)
    0.75
    """
    return mean([cell for cell in matrix[-1] if cell is not None])


def average_forgetting(matrix: Matrix) -> float | None:
    """Return the mean over p of max_{l<q} A[l][p] - A[q][p] (the usual definition).

    It is negative if the last row is the best.

    >>> A = [[0.9, None, None], [0.7, 0.8, None], [0.6, 0.9, 0.5]]
    >>> round(average_forgetting(A), 6)    # ((0.9 - 0.6) + (0.8 - 0.9)) / 2
    0.1
    """
    return _mean_change(matrix, lambda earlier, last: max(earlier) - last)


def average_forgetting_released(matrix: Matrix) -> float | None:
    """Return the mean over p of max_{l<=q} A[l][p] - A[q][p]: the paper's released definition.

    The last row is a candidate for the maximum, so no term is negative.

    >>> A = [[0.9, None, None], [0.7, 0.8, None], [0.6, 0.9, 0.5]]
    >>> round(average_forgetting_released(A), 6)    # ((0.9 - 0.6) + 0) / 2
    0.15
    """
    return _mean_change(matrix, lambda earlier, last: max(*earlier, last) - last)


def backward_transfer(matrix: Matrix) -> float | None:
    """Return the mean over p of A[q][p] - A[first][p], where first is the first row that has p.

    Lopez-Paz and Ranzato (2017) write it A[K-1][p] - A[p][p], which is equal if rows are ends of
    tasks.

    >>> A = [[0.9, None, None], [0.7, 0.8, None], [0.6, 0.9, 0.5]]
    >>> round(backward_transfer(A), 6)    # ((0.6 - 0.9) + (0.9 - 0.8)) / 2
    -0.1
    """
    return _mean_change(matrix, lambda earlier, last: last - earlier[0])


def _mean_change(matrix: Matrix, change: Callable[[Sequence[float], float], float]) -> float | None:
    """Return the mean of change(earlier accuracies, last accuracy) over the evaluations."""
    changes = []
    for *column, last in zip(*matrix, strict=True):
        earlier = [cell for cell in column if cell is not None]
        if earlier and last is not None:
            changes.append(change(earlier, last))
    return mean(changes) if changes else None


def anytime_accuracy(accuracies: Sequence[float]) -> float:
    """Return the mean of the accuracies on all seen classes at evenly spaced steps.

    >>> round(anytime_accuracy([1.0, 0.8, 0.6]), 6)
    0.8
    """
    return mean(accuracies)


def evaluation_steps(samples: Sequence[int], points: int) -> list[int]:
    """Return the steps that complete each of `points` equal parts of the stream.

    samples: images learned after each step, ascending; the last step is always included.

    >>> evaluation_steps([10, 20, 30, 40, 45], points=3)    # a third is 15, two thirds are 30
    [2, 3, 5]
    """
    ends = [samples[-1] * k / points for k in range(1, points + 1)]
    return [
        step
        for step, (before, after) in enumerate(pairwise([0, *samples]), start=1)
        if any(before < end <= after for end in ends)
    ]
