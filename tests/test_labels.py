from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterad.errors import SteradError
from sterad.labels import LabelIndex, to_python_labels

integers = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30)
strings = st.lists(st.text(st.characters(exclude_characters="\0"), max_size=5), max_size=30)


@given(st.one_of(st.lists(integers, max_size=5), st.lists(strings, max_size=5)))
def test_encoding_is_invertible(calls: list[list[Any]]) -> None:
    index, all_labels = LabelIndex(), [label for call in calls for label in call]
    for call in calls:
        indices = index.encode(call)
        assert indices.dtype == np.int64
        assert [index.known[i] for i in indices] == call
    assert index.known == list(dict.fromkeys(all_labels)), "indices in order of first appearance"


def test_an_assigned_index_never_changes() -> None:
    index = LabelIndex()
    assert index.encode([30, 10]).tolist() == [0, 1]
    assert index.encode([20, 10, 30]).tolist() == [2, 1, 0]
    assert index.known == [30, 10, 20]


def test_known_labels_keep_their_positions() -> None:
    index = LabelIndex(["b", "a"])
    assert index.encode(["a", "c", "b"]).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 1, 3], dtype=np.uint8),
        np.array([3, 1, 3], dtype=np.int32),
        np.array(["x", "yy", "x"]),
        np.array(["x", "yy", "x"], dtype=object),
        ["x", "yy", "x"],
        (3, 1, 3),
        [np.int64(3), np.int64(1), np.int64(3)],
        [True, False, True],
    ],
)
def test_all_containers_give_python_values(labels: Any) -> None:
    converted = to_python_labels(labels)
    assert {type(label) for label in converted} <= {int, str, bool}
    assert LabelIndex().encode(labels).tolist() == [0, 1, 0]


def test_read_only_labels_are_accepted() -> None:
    labels = np.array([1, 2])
    labels.flags.writeable = False
    assert LabelIndex().encode(labels).tolist() == [0, 1]


def test_an_empty_list_gives_no_indices() -> None:
    assert LabelIndex().encode([]).tolist() == []


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.5, 1.0], "labels are of type float64: give integers or strings"),
        ([1, 2.5], "float64"),
        ([None, "a"], "labels are of type object"),
        ([b"a"], "labels are of type |S1"),
        ([1, "a"], "label 1 is a int among strings: use one type"),
        (("a", 2.5), "label 2.5 is a float among strings"),
        ([[1], [2]], r"labels have shape \(2, 1\): give a flat list, one label per image"),
        (3, r"labels have shape \(\)"),
        ([[1], [2, 3]], "labels are not a flat list .*: give one per image"),
    ],
)
def test_invalid_labels_are_refused_and_not_stored(labels: Any, message: str) -> None:
    index = LabelIndex([7])
    with pytest.raises(SteradError, match=message):
        index.encode(labels)
    assert index.known == [7]


@pytest.mark.parametrize(("known", "label"), [(1, "1"), ("1", 1), (1, True)])
def test_a_change_of_the_label_type_is_refused(known: Any, label: Any) -> None:
    index = LabelIndex([known])
    with pytest.raises(SteradError, match=f"label {label!r} is a .* like {known!r}: use one type"):
        index.encode([label])
    assert index.known == [known]
    assert index.check([known, known]) == [known, known]
