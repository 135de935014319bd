from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterad.errors import SteradError
from sterad.labels import LabelIndex, plain_labels

integers = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30)
strings = st.lists(st.text(st.characters(exclude_characters="\0"), max_size=5), max_size=30)


@given(st.one_of(st.lists(integers, max_size=5), st.lists(strings, max_size=5)))
def test_indices_lead_back_to_the_labels(calls: list[list[Any]]) -> None:
    index, all_labels = LabelIndex(), [label for call in calls for label in call]
    for call in calls:
        indices = index.learn(call)
        assert indices.dtype == np.int64
        assert [index.known[at] for at in indices] == call
    assert index.known == list(dict.fromkeys(all_labels)), "indices in order of first appearance"


def test_an_index_is_never_taken_back() -> None:
    index = LabelIndex()
    assert index.learn([30, 10]).tolist() == [0, 1]
    assert index.learn([20, 10, 30]).tolist() == [2, 1, 0]
    assert index.array().tolist() == [30, 10, 20]


def test_it_starts_from_known_labels() -> None:
    index = LabelIndex(["b", "a"])
    assert index.learn(["a", "c", "b"]).tolist() == [1, 2, 0]


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
def test_many_containers_give_pythons_own_values(labels: Any) -> None:
    plain = plain_labels(labels)
    assert {type(one) for one in plain} <= {int, str, bool}
    assert LabelIndex().learn(labels).tolist() == [0, 1, 0]


def test_read_only_labels_are_fine() -> None:
    labels = np.array([1, 2])
    labels.flags.writeable = False
    assert LabelIndex().learn(labels).tolist() == [0, 1]


def test_no_labels_are_no_labels() -> None:
    assert LabelIndex().learn([]).tolist() == []


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([0.5, 1.0], "labels are of type float64: .* integers or strings; round or map"),
        ([1, 2.5], "float64"),
        ([None, "a"], "labels are of type object"),
        ([b"a"], "labels are of type |S1"),
        ([1, "a"], "label 1 is a int among strings: keep to one kind"),
        (("a", 2.5), "label 2.5 is a float among strings"),
        ([[1], [2]], r"labels have shape \(2, 1\): give one label an image"),
        (3, r"labels have shape \(\)"),
        ([[1], [2, 3]], "labels are not one flat list .*: give one an image"),
    ],
)
def test_what_is_no_label_is_named_and_leaves_no_trace(labels: Any, told: str) -> None:
    index = LabelIndex([7])
    with pytest.raises(SteradError, match=told):
        index.learn(labels)
    assert index.known == [7]


@pytest.mark.parametrize(("known", "label"), [(1, "1"), ("1", 1), (1, True)])
def test_another_kind_than_before_is_refused(known: Any, label: Any) -> None:
    index = LabelIndex([known])
    with pytest.raises(SteradError, match=f"label {label!r} is a .* like {known!r}: keep to one"):
        index.learn([label])
    assert index.known == [known]
    assert index.check([known, known]) == [known, known]
