from collections import Counter
from collections.abc import Callable

import pytest

from sterad_reproduction.numbers import Number, load_numbers

Find = Callable[..., Number]


def test_numbers_per_table() -> None:
    counts = Counter((number.table.number, number.is_printed) for number in load_numbers())
    printed = {1: 11 * 8, 2: 10 * 8, 3: 2 * 6, 4: 5 * 8 - 1, 5: 3 * 3}
    commented = {1: 8, 3: 6}
    assert {t: n for (t, is_printed), n in counts.items() if is_printed} == printed
    assert {t: n for (t, is_printed), n in counts.items() if not is_printed} == commented
    runs = {number.table.number: number.runs for number in load_numbers()}
    assert runs == {1: 10, 2: 10, 3: 5, 4: 5, 5: 5}


def test_settings_are_unique_within_a_table() -> None:
    counts = Counter(
        (n.table.number, n.is_quoted, str(sorted(n.settings.items()))) for n in load_numbers()
    )
    assert set(counts.values()) == {1}


@pytest.mark.parametrize(
    ("table", "settings", "mean", "std"),
    [
        (1, {"method": "agem", "dataset": "cifar10", "memory": 500}, 16.88, 1.42),
        (1, {"method": "agd-fd", "dataset": "tiny-imagenet", "memory": 10_000}, 34.77, 0.52),
        (1, {"method": "ocm", "dataset": "cifar10", "memory": 1000}, 72.6, 1.98),
        (1, {"method": "dvc", "dataset": "tiny-imagenet", "memory": 5000}, 1.72, 0.74),
        (1, {"method": "pfc", "dataset": "cifar100", "memory": 2000}, 31.1, 1.6),
        (2, {"method": "derpp", "dataset": "cifar100", "memory": 2000}, 28.52, 10.05),
        (2, {"method": "gdumb", "dataset": "tiny-imagenet", "memory": 10_000}, 22.35, 0.23),
        (2, {"method": "vmf-fd", "dataset": "cifar100", "memory": 5000}, 50.71, 0.6),
        (2, {"method": "agd-fd", "dataset": "cifar10", "memory": 500}, 64.38, 2.0),
        (3, {"directions": "moving", "memory_batch": 16}, 16.42, 0.25),
        (3, {"directions": "basis", "memory_batch": 512}, 49.62, 0.49),
        (3, {"directions": "moving-mean", "memory_batch": 64}, 14.78, 1.42),
        (4, {"method": "er-ace", "views": 9}, 40.9, 1.3),
        (4, {"method": "scr", "views": 10}, 46.3, 0.5),
        (4, {"method": "agd-fd", "views": 3}, 49.4, 0.4),
        (5, {"method": "er", "memory": 1000}, 32.0, 2.6),
        (5, {"method": "agd-fd", "memory": 5000}, 50.0, 0.9),
    ],
)
def test_selected_numbers(
    number: Find, table: int, settings: dict[str, object], mean: float, std: float
) -> None:
    found = number(table, **settings)
    assert (found.mean, found.std) == (mean, std)


def test_sums_per_table() -> None:
    """Sums of means and standard deviations per table reveal typing errors."""
    sums: dict[int, list[float]] = {}
    for number in load_numbers():
        total = sums.setdefault(number.table.number, [0.0, 0.0])
        total[0], total[1] = total[0] + number.mean, total[1] + number.std
    assert {t: (round(m, 2), round(s, 2)) for t, (m, s) in sums.items()} == SUMS


SUMS = {
    1: (3068.41, 127.25),
    2: (2561.16, 130.8),
    3: (574.88, 15.59),
    4: (1818.3, 32.6),
    5: (383.7, 20.1),
}
